"""The API function: the kit's routes, and yours."""

import callback_routes
import job_routes
from web.app import Api

api = Api()
api.include_router(job_routes.router)
api.include_router(callback_routes.router)
handler = api.handler
