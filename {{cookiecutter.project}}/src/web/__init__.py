"""HTTP: what every route needs, whichever function serves it.

A second function of the same API starts with these lines, and then adds its routes:

    from web.app import Api
    from web.owner import own_job
    from web.responses import job_response

    api = Api()
    handler = api.handler

    @api.get("/jobs/<job_id>/report")
    def get_report(job_id: str) -> Response[str]:
        job = own_job(api.current_event, job_id)

`web.payload` compiles payload.schema.json, so only the route that accepts jobs imports it.
"""
