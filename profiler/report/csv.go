package report

import (
	"strings"
)

// textCell returns a text cell in plain ASCII. Spreadsheets run cells that start with = + - @ as formulas, so it puts a
// ' before them, which marks text. Numbers are never text here.
func textCell(s string) string {
	s = plain(s)
	if trimmed := strings.TrimLeft(s, " "); trimmed != "" && strings.IndexByte("=+-@", trimmed[0]) >= 0 {
		return "'" + s
	}
	return s
}
