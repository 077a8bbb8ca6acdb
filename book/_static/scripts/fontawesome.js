// Stands in the place of the theme's own file of this name, which weighs 540 kB compressed for a dozen icons.
// The icons are in rank-by-rank.css.
