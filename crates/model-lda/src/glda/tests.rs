mod posterior;
mod chains;
mod geweke;
