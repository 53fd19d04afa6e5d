//! What surrounds a call: by which entrance it came in, from whom, and where in the call tree it stands.

use std::sync::Arc;

use crate::blocked::Cause;
use crate::check::call::Request;
use crate::clock::Timestamp;
use crate::context::{Context, usable_origin};
use crate::event::Outcome;
use crate::node::Node;
use crate::resource::Resource;
use crate::tree::Position;
