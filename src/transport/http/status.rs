//! The HTTP status of a JSON-RPC answer.

use hyper::StatusCode;

use crate::protocol::{Era, Fault};

/// The status under which a fault is told.
///
/// A legacy peer takes 404 for a dead session, so its faults ride on 200 once a message was one
/// (2025-11-25 basic/transports; 2026-07-28 transports/streamable-http, Error Handling).
pub(super) fn of(fault: &Fault, era: Era) -> StatusCode {
    match (fault, era) {
        (Fault::Parse(_) | Fault::InvalidRequest(_), _) => StatusCode::BAD_REQUEST,
        (Fault::IncompleteClaim { .. } | Fault::UnsupportedProtocolVersion { .. }, _) => StatusCode::BAD_REQUEST,
        (Fault::HeaderMismatch { .. } | Fault::MissingClientCapability { .. }, _) => StatusCode::BAD_REQUEST,
        (Fault::NotOpened { .. }, _) => StatusCode::BAD_REQUEST,
        (Fault::MethodNotFound(_), Era::Modern) => StatusCode::NOT_FOUND,
        (Fault::MethodNotFound(_), Era::Legacy) => StatusCode::OK,
        (Fault::InvalidParams(_) | Fault::UnknownTool(_) | Fault::ResourceNotFound { .. }, _) => StatusCode::OK,
        (Fault::Internal { .. } | Fault::Failed(_) | Fault::Kept { .. }, _) => StatusCode::OK,
    }
}
