//! Rows of Magnum's tables, and their conversion to and from the domain types.
