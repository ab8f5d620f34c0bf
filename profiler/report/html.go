package report

import (
	_ "embed"
	"html/template"
	"io"
	"sync"

	"github.com/llmtop/llmtop/profiler/clean"
)

//go:embed report.html.tmpl
var page string

// pageTemplate is parsed for the first page, since most runs of the program write none.
var pageTemplate = sync.OnceValue(func() *template.Template { return template.Must(template.New("report").Parse(page)) })

// WriteHTML writes the summary as one page with charts that needs nothing else: no script, no font, no network. Whatever came from outside is
// cleaned of control characters here and escaped by html/template.
func (r *Report) WriteHTML(w io.Writer) error {
	return pageTemplate().Execute(w, struct {
		Title    string
		Sections []pageSection
		Charts   []chart
	}{clean.Printable("llmtop: " + r.name()), exported(r.sections()), r.charts()})
}

// name is what the report is of, in a few words.
func (r *Report) name() string {
	if r.Model == nil {
		return r.Engine.Name
	}
	return r.Model.Name + spaced(r.Model.Quantisation)
}

// pageSection is a section as the template sees it.
type pageSection struct {
	Title  string
	Words  []string
	Header []string
	Left   int // columns of words
	Rows   [][]pageCell
}

type pageCell struct {
	Text string
	Left bool // words; otherwise a number
}

func exported(sections []section) []pageSection {
	out := make([]pageSection, 0, len(sections))
	for _, s := range sections {
		p := pageSection{Title: clean.Printable(s.title), Header: s.header, Left: s.left}
		for _, words := range s.words {
			p.Words = append(p.Words, clean.Printable(words))
		}
		for _, row := range s.rows {
			cells := make([]pageCell, len(row))
			for i, text := range row {
				cells[i] = pageCell{clean.Printable(text), i < s.left}
			}
			p.Rows = append(p.Rows, cells)
		}
		out = append(out, p)
	}
	return out
}
