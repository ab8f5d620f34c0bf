package ui

import (
	"bytes"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// TestFlusher checks that the terminal library still has the ticker that the flusher drives, when a frame is drawn.
func TestFlusher(t *testing.T) {
	m := &tickerModel{}
	m.program = tea.NewProgram(m, tea.WithInput(nil), tea.WithOutput(new(bytes.Buffer)), tea.WithoutSignalHandler())
	if _, err := m.program.Run(); err != nil {
		t.Fatal(err)
	}
	if !m.found {
		t.Error("the library has no ticker: frames and keys show with a delay of up to 1/flushRate s")
	}
}

// tickerModel looks for the ticker when it draws, and quits.
type tickerModel struct {
	program *tea.Program
	found   bool
}

func (m *tickerModel) Init() tea.Cmd                       { return tea.Quit }
func (m *tickerModel) Update(tea.Msg) (tea.Model, tea.Cmd) { return m, nil }
func (m *tickerModel) View() tea.View {
	m.found = tickerOf(m.program) != nil
	return tea.NewView("")
}
