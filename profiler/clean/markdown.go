package clean

import "strings"

var special = strings.NewReplacer(
	"\\", "\\\\", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "~", "\\~", "#", "\\#", "!", "\\!",
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "@", "&#64;",
)

// Markdown returns Line with the characters escaped that mean something to Markdown, HTML or the hosts of Markdown
// (mentions of people included).
func Markdown(s string) string { return special.Replace(Line(s)) }

// Code returns Line for use between single backquotes.
func Code(s string) string { return strings.ReplaceAll(Line(s), "`", "'") }
