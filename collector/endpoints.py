"""Every endpoint of the read API, in the order of the reference page."""

from headway.collector import (
    alert_api,
    comparison_api,
    course_api,
    fleet_api,
    hardware_api,
    health_api,
    incident_api,
    node_api,
    note_api,
    postmortem_api,
    question_api,
    record_api,
    recoveries_api,
    result_api,
    run_api,
    search_api,
    sql_api,
    window_api,
)
from headway.collector.endpoint import Endpoint

ENDPOINTS: tuple[Endpoint, ...] = (
    *fleet_api.ENDPOINTS,
    *health_api.ENDPOINTS,
    *recoveries_api.ENDPOINTS,
    *hardware_api.ENDPOINTS,
    *run_api.ENDPOINTS,
    *window_api.ENDPOINTS,
    *course_api.ENDPOINTS,
    *comparison_api.ENDPOINTS,
    *incident_api.ENDPOINTS,
    *postmortem_api.ENDPOINTS,
    *alert_api.ENDPOINTS,
    *node_api.ENDPOINTS,
    *note_api.ENDPOINTS,
    *result_api.ENDPOINTS,
    *record_api.ENDPOINTS,
    *search_api.ENDPOINTS,
    *question_api.ENDPOINTS,
    *sql_api.ENDPOINTS,
)
