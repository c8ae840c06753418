//! Parts of pages that draw or list something.

pub(crate) mod chart;
pub(crate) mod pango_backend;
pub(crate) mod rows;
pub(crate) mod starts;
