"""The settings: complete, or the function does not start."""

import subprocess
import sys
from functools import partial

import pytest

from jobs.settings import Settings, SettingsError, client, required_int


def test_the_settings_of_the_template() -> None:
    settings = Settings.from_environment()
    assert settings.jobs_table == "JobsTable"
    assert settings.idempotency_table == "IdempotencyTable"
    assert settings.job_events_topic.endswith(":JobEventsTopic")
    assert settings.retention_seconds == 30 * 24 * 60 * 60


@pytest.mark.parametrize("name", ["JOBS_TABLE", "IDEMPOTENCY_TABLE", "JOB_RETENTION_DAYS"])
def test_a_missing_variable_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = f"^{name} is not set. template.yaml sets it for the deployed function.$"
    for lack in (partial(monkeypatch.setenv, name, ""), partial(monkeypatch.delenv, name)):
        lack()
        with pytest.raises(SettingsError, match=sentence):
            Settings.from_environment()


def test_a_missing_variable_stops_the_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOBS_TABLE")
    started = subprocess.run(
        [sys.executable, "-c", "import jobs.settings"],
        env={"PYTHONPATH": "src", "JOB_RETENTION_DAYS": "30", "IDEMPOTENCY_TABLE": "any"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert started.returncode == 1
    assert started.stderr.splitlines()[-1].startswith("jobs.settings.SettingsError: JOBS_TABLE is")


@pytest.mark.parametrize(
    ("value", "minimum"),
    [("0", 1), ("1", 2), ("-1", 0), ("1.5", 1), ("a month", 1), ("a month", 2)],
)
def test_a_wrong_number_is_named(value: str, minimum: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBER", "2")
    assert required_int("NUMBER", minimum=2) == 2
    monkeypatch.setenv("NUMBER", value)
    with pytest.raises(SettingsError) as error:
        required_int("NUMBER", minimum)
    assert str(error.value) == f"NUMBER is '{value}'. It takes a whole number from {minimum} on."


def test_a_job_is_kept_for_a_day_or_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOB_RETENTION_DAYS", "0")
    with pytest.raises(SettingsError, match="from 1 on"):
        Settings.from_environment()


def test_no_topic_means_no_notifications(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOB_EVENTS_TOPIC")
    assert Settings.from_environment().job_events_topic == ""


def test_one_client_serves_all() -> None:
    assert client("sqs") is client("sqs")


def test_a_client_gives_up_in_time() -> None:
    config = client("sqs").meta.config
    assert (config.connect_timeout, config.read_timeout) == (2, 3)
    assert config.retries == {"mode": "standard", "total_max_attempts": 3}
