//! The tests of the library through its public face: one binary, so that it is linked once.

mod copies;
mod format;
mod image;
mod load;
mod model;
mod rates;
mod space;
