//! Encoded text on disk, written in bounded memory and mapped by later runs.

mod spool;
mod corpus_file;
mod documents_file;
