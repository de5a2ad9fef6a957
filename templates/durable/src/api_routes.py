

@app.post("/jobs/<job_id>/callback")
def answer_job(job_id: str) -> Response[str]:
    """Give a waiting job the answer that it waits for. Only the first one counts."""
    job = _owned(job_id)
    _check_media_type(app.current_event)
    job = dispatch.deliver(job, _body(app.current_event))
    logger.info("answer delivered", extra={"status": job.status})
    return _answer(200, job)
