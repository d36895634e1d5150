//! Damaged tables: reported, never wrong.
