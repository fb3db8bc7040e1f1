//! The limit of HTTP: hyper and fixed answers.

use std::sync::Arc;

use twodoor_benches::{Fixed, bare_http, tools_wanted};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let fixed = Arc::new(Fixed::new(tools_wanted()));
    bare_http::serve(move |message| {
        let fixed = Arc::clone(&fixed);
        async move { Ok(fixed.answer(&message)?) }
    })
    .await
}
