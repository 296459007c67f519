package report

// Visible lets the tests say what of a text is shown.
var Visible = visible
