"""The API function: the kit's routes, and yours."""

import job_routes
from web.app import Api

api = Api()
api.include_router(job_routes.router)
handler = api.handler
