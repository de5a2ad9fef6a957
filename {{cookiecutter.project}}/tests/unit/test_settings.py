"""The settings: complete, or the function does not start."""

import subprocess
import sys

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

    monkeypatch.setenv(name, "")
    with pytest.raises(SettingsError, match=sentence):
        Settings.from_environment()

    monkeypatch.delenv(name)
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


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "a month"])
def test_a_wrong_number_is_named(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOB_RETENTION_DAYS", value)
    with pytest.raises(SettingsError) as error:
        Settings.from_environment()
    assert str(error.value) == (
        f"JOB_RETENTION_DAYS is '{value}'. It takes a whole number from 1 on."
    )


@pytest.mark.parametrize("minimum", [1, 2])
def test_text_is_no_number_whatever_the_minimum(
    minimum: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBER", "a month")
    with pytest.raises(SettingsError, match="NUMBER is 'a month'"):
        required_int("NUMBER", minimum)


def test_the_least_number_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBER", "1")
    assert required_int("NUMBER", minimum=1) == 1


def test_no_topic_means_no_notifications(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOB_EVENTS_TOPIC")
    assert Settings.from_environment().job_events_topic == ""


def test_one_client_serves_all() -> None:
    assert client("sqs") is client("sqs")


def test_a_client_gives_up_in_time() -> None:
    config = client("sqs").meta.config
    assert (config.connect_timeout, config.read_timeout) == (2, 3)
    assert config.retries == {"mode": "standard", "total_max_attempts": 3}
