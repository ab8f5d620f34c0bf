package theme

// Glyphs are the characters that the screen is drawn with. Each is one cell wide.
type Glyphs struct {
	ASCII bool

	// Box drawing, light.
	TopLeft, TopRight, BottomLeft, BottomRight, Horizontal, Vertical rune
	TeeRight                                                         rune

	Eighths [9]rune  // column filled from below, 0/8 to 8/8
	Block   rune     // full cell
	Bar     rune     // cell of a bar, with a gap to the row above
	Gauge   rune     // cell of a gauge
	Upper   rune     // upper half block
	Shades  []rune   // empty to full, for heat without colour
	Track   rune     // the empty part of a gauge
	Swatch  rune     // legend mark
	Fills   [12]rune // one per TTFT component in drawing order, for bars without colour

	Live, Loading, Paused, Failed, Idle rune // engine states
	Good, Info, Watch, Bad              rune // verdicts
	Yes, No                             rune // target met or not
	Target                              rune // mark on a bar
	Cursor, Ellipsis, Arrow, Bullet     rune
	Cold, Cut, Stall                    rune // Stall marks a point of a chart
	Up, Down                            rune // sort order of a column: smallest or largest first
	Play, Thick                         rune // replay; Thick draws the played part of its line
	Times                               string
	Spinner                             []rune
}

// Unicode is the default glyph set: box drawing, block elements and geometric shapes that common monospaced fonts have.
var Unicode = &Glyphs{
	TopLeft: '╭', TopRight: '╮', BottomLeft: '╰', BottomRight: '╯', Horizontal: '─', Vertical: '│',
	TeeRight: '┤',
	Eighths:  [9]rune{' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'},
	Block:    '█', Bar: '▇', Gauge: '■',
	Upper: '▀', Shades: []rune(" ·░▒▓█"), Track: '·', Swatch: '■',
	Fills: [12]rune{'▒', '╶', '░', '─', '┼', '═', '█', '▓', '»', '«', '╴', '·'},
	Live:  '●', Loading: '◌', Paused: '‖', Failed: '✗', Idle: '○',
	Good: '✓', Info: '•', Watch: '▲', Bad: '✗', Yes: '✓', No: '✗', Target: '┊',
	Cursor: '▌', Ellipsis: '…', Arrow: '→', Bullet: '·', Cold: '*', Cut: '»', Stall: '▲', Up: '↑', Down: '↓', Times: "×",
	Play: '►', Thick: '━',
	Spinner: []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"),
}

// Plain is the ASCII glyph set, for fonts and locales without Unicode.
var Plain = &Glyphs{
	ASCII:   true,
	TopLeft: '+', TopRight: '+', BottomLeft: '+', BottomRight: '+', Horizontal: '-', Vertical: '|',
	TeeRight: '+',
	Eighths:  [9]rune{' ', '_', '_', '.', '-', '-', '=', '=', '#'},
	Block:    '#', Bar: '#', Gauge: '#',
	Upper: '#', Shades: []rune(" .:-=+*#%@"), Track: '.', Swatch: '#',
	Fills: [12]rune{'L', 'R', 'Q', 'W', 'T', 'E', 'P', 'F', '>', '<', 'S', '.'},
	Live:  '*', Loading: 'o', Paused: '=', Failed: 'x', Idle: 'o',
	Good: 'y', Info: 'i', Watch: '!', Bad: 'x', Yes: 'y', No: 'x', Target: ':',
	Cursor: '_', Ellipsis: '~', Arrow: '>', Bullet: '.', Cold: '*', Cut: '>', Stall: '!', Up: '^', Down: 'v', Times: "x",
	Play: '>', Thick: '=',
	Spinner: []rune("|/-\\"),
}
