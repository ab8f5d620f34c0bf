package report

import (
	_ "embed"
	"html/template"
	"sync"

	"github.com/llmtop/llmtop/profiler/clean"
)

//go:embed report.html.tmpl
var page string

// pageTemplate parses the template on first use, since most runs write no page.
var pageTemplate = sync.OnceValue(func() *template.Template { return template.Must(template.New("report").Parse(page)) })

// documentName returns a short title: the model, or the engine.
func documentName(r *Report) string {
	if r.Model == nil {
		return r.Engine.Name
	}
	return r.Model.Name + withSpace(r.Model.Quantisation)
}

// pageSection is a section as the template needs it.
type pageSection struct {
	Title  string
	Words  []string
	Header []string
	Left   int // text columns
	Rows   [][]pageCell
}

type pageCell struct {
	Text string
	Left bool // text; otherwise a number
}

// pageSections cleans sections for the template.
func pageSections(sections []section) []pageSection {
	out := make([]pageSection, 0, len(sections))
	for _, s := range sections {
		p := pageSection{Title: clean.Line(s.title), Left: s.left}
		for _, words := range s.header {
			p.Header = append(p.Header, clean.Line(words))
		}
		for _, words := range s.words {
			p.Words = append(p.Words, clean.Line(words))
		}
		for _, row := range s.rows {
			cells := make([]pageCell, len(row))
			for i, text := range row {
				cells[i] = pageCell{clean.Line(text), i < s.left}
			}
			p.Rows = append(p.Rows, cells)
		}
		out = append(out, p)
	}
	return out
}
