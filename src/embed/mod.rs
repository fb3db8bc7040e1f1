//! The library's face: a server of your own async functions, served to both eras over stdio and HTTP.
//!
//! ```
//! use serde::Deserialize;
//! use twodoor::embed::{Call, JsonSchema, Resource, Server, Tool};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Greet {
//!     /// Whom to greet.
//!     name: String,
//! }
//!
//! let server = Server::new("hello", "1.0.0")
//!     .tool(Tool::new("greet", "Greets somebody.", |args: Greet, _call: Call| async move {
//!         format!("Hello, {}!", args.name)
//!     }))
//!     .resource(Resource::text("notes:today", "today", "Water the plants."));
//! # server.ready().expect("it can be published");
//! // server.serve_stdio().await?, or server.serve_http("127.0.0.1:8484".parse()?).await?
//! ```
//!
//! # Asking the client
//!
//! A handler asks in line. Where the answer is not there yet, `?` ends the run; with the answer the handler is run again
//! from its start. That holds for clients of either era, and for several rounds.
//!
//! ```
//! # use serde::Deserialize;
//! # use twodoor::embed::{Call, Elicited, JsonSchema, NoArguments, Server, Tool, ToolError};
//! #[derive(Deserialize, JsonSchema)]
//! struct Guest {
//!     /// Who comes.
//!     name: String,
//!     /// How many in all.
//!     seats: u8,
//! }
//!
//! async fn book(_: NoArguments, call: Call) -> Result<String, ToolError> {
//!     let Elicited::Accepted(guest) = call.elicit::<Guest>("guest", "For whom?")? else {
//!         return Err(ToolError::new("nothing was booked: nobody said for whom"));
//!     };
//!     let blessing = call.sample("blessing", &format!("Welcome {} in one line.", guest.name))?;
//!     Ok(format!("{} seats. {}", guest.seats, blessing.text()))
//! }
//!
//! let server = Server::new("tables", "1.0.0").tool(Tool::new("book", "Books a table.", book));
//! # server.ready().expect("it can be published");
//! ```
//!
//! # Changing what is published
//!
//! [`Ready::handle`], or [`Call::server`] within a handler, publishes other tools while the server is served, and tells
//! the clients that listen.
//!
//! ```
//! # use twodoor::embed::{Call, NoArguments, Resource, Server, Tool};
//! let ready = Server::new("growing", "1.0.0").ready().expect("it can be published");
//! let before = ready.handle().digest();
//! let tool = Tool::new("late", "Came later.", |_: NoArguments, _: Call| async { "here" });
//! ready.handle().change(|listing| listing.put_tool(tool)).expect("it can be published");
//! assert_ne!(ready.handle().digest(), before);
//! ```

#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
struct Page;

mod call;
mod error;
mod give;
mod handle;
mod prompt;
mod question;
mod resource;
mod rooms;
mod schema;
mod server;
mod setters;
mod skill;
mod tool;

pub use schemars::{self, JsonSchema};

pub use self::call::{Asks, Call};
pub use self::error::{ServerError, Unpublishable};
pub use self::give::{Give, Json, NotFound, Reading, Refused, ToolError};
pub use self::handle::{Handle, Listing};
pub use self::prompt::Prompt;
pub use self::question::{Elicited, Form, Question, Root, Roots, Round, Sample, Sampled, Url};
pub use self::resource::{Resource, Template};
pub use self::server::{Inside, Ready, Server};
pub use self::skill::Skill;
pub use self::tool::{NoArguments, Tool};
pub use crate::protocol::{
    Annotations, Audience, Block, Body, CacheScope, Completing, Completion, Content, Icon, InputKind, LogLevel, Piece,
    PromptMessage, Prompted, Reference, ResourceContents, ResourceLink, Role, TaskSupport,
};
