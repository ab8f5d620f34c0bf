// Package clean makes text from outside safe to show and to put into documents.
package clean

import "strings"

var special = strings.NewReplacer(
	"\\", "\\\\", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "~", "\\~", "#", "\\#", "!", "\\!",
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "@", "&#64;", "\n", " ", "\t", " ",
)

// Markdown takes the meaning that Markdown, HTML and those who host them give to characters, mentions of people included, and drops control
// characters. The result has one line.
func Markdown(s string) string { return special.Replace(Printable(s)) }

// Code makes a text fit between single backquotes.
func Code(s string) string {
	return strings.NewReplacer("`", "'", "\n", " ").Replace(Printable(s))
}

// Printable drops control characters but for newlines and tabs.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}
