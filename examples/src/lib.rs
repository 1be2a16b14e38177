//! What the examples share: their command line.
