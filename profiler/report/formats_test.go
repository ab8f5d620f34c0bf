package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/verdict"
)

// formats returns the writers of all formats.
func formats(r *Report) map[string]func(io.Writer) error {
	return map[string]func(io.Writer) error{
		"JSON": r.WriteJSON, "CSV": r.WriteCSV, "text": r.WriteText, "summary": r.WriteSummary, "Markdown": r.WriteMarkdown, "HTML": r.WriteHTML, "JSON Lines": r.WriteJSONL,
	}
}

func in(t testing.TB, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestEveryLineIsARequest(t *testing.T) {
	r := wholeRun().build(Meta{})
	lines := strings.Split(strings.TrimSpace(in(t, r.WriteJSONL)), "\n")
	if len(lines) != len(r.Requests) {
		t.Fatalf("%d lines for %d requests", len(lines), len(r.Requests))
	}
	for i, line := range lines {
		var q Request
		if err := json.Unmarshal([]byte(line), &q); err != nil || q.ID != r.Requests[i].ID {
			t.Errorf("line %d: %v, request %d", i+1, err, q.ID)
		}
	}
}

// TestTotalsAgree checks that every format for people has the same totals.
func TestTotalsAgree(t *testing.T) {
	r := benched()
	for name, doc := range map[string]string{"text": in(t, r.WriteText), "Markdown": in(t, r.WriteMarkdown), "HTML": in(t, r.WriteHTML)} {
		for _, number := range []string{"11 generated", "5.07 tokens/s", "2 at a time", "298 ms?"} {
			if !strings.Contains(doc, number) {
				t.Errorf("%s lacks %q:\n%s", name, number, doc)
			}
		}
	}
}

// TestPageIsSelfContained checks that the page is well-formed and self-contained.
func TestPageIsSelfContained(t *testing.T) {
	html := in(t, benched().WriteHTML)
	for _, outside := range []string{"http://", "https://", "src=", "href=", "url(", "<script", "@import"} {
		if strings.Contains(html, outside) {
			t.Errorf("the page has %q", outside)
		}
	}
	svg := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(html, -1)
	if len(svg) < 3 {
		t.Fatalf("%d charts", len(svg))
	}
	for _, s := range svg {
		d := xml.NewDecoder(strings.NewReader(s))
		for {
			_, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, s)
			}
		}
		if strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
			t.Errorf("a chart has an invalid number:\n%s", s)
		}
	}
}

// TestPageInBrowser opens the page in a headless browser.
func TestPageInBrowser(t *testing.T) {
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		t.Skip("no Chromium on this machine: apt-get install chromium")
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "report.html")
	if err := os.WriteFile(path, []byte(in(t, benched().WriteHTML)), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+folder+"/profile", "--enable-logging=stderr", "--dump-dom", "file://"+path)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	dom, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if n := strings.Count(string(dom), "<rect"); n < 10 || !strings.Contains(string(dom), "Where TTFT goes") {
		t.Errorf("the browser sees %d boxes:\n%s", n, dom)
	}
	if strings.Contains(stderr.String(), "CONSOLE") {
		t.Errorf("the browser complains:\n%s", &stderr)
	}
}

// TestHostileNames checks that names from the engine cannot break out of any format.
func TestHostileNames(t *testing.T) {
	r := benched()
	const unsafe = "\x1b\u009b\u202e\u2066\u200b\x7f"
	evil := "<script>alert(1)</script>\" onload=\"alert(1)|\x1b[31m\n# @everyone" + unsafe
	r.Model.Name, r.Engine.Device = evil, evil
	r.Requests[0].Label, r.Requests[0].Group, r.Bench.Points[0].Name = evil, evil, evil
	r.Verdicts = append(r.Verdicts, verdict.Verdict{Topic: evil, Text: evil, Evidence: evil, Try: evil})
	for name, write := range formats(r) {
		doc := in(t, write)
		if strings.ContainsAny(doc, unsafe) {
			t.Errorf("%s has characters that a terminal obeys or that are invisible", name)
		}
		if (name == "HTML" || name == "Markdown") && strings.Contains(doc, "<script") {
			t.Errorf("%s lets a tag through", name)
		}
		if name == "HTML" && strings.Contains(doc, `" onload=`) {
			t.Error("HTML lets an attribute through")
		}
		if name == "Markdown" && (strings.Contains(doc, "\n# ") || strings.Contains(doc, "@everyone")) {
			t.Error("Markdown lets a heading or a mention through")
		}
	}
}

// TestEmptyRun checks that an empty report can be written in every format.
func TestEmptyRun(t *testing.T) {
	r := newRun().build(Meta{})
	for name, write := range formats(r) {
		if doc := in(t, write); strings.Contains(doc, "NaN") || doc == "" && name != "JSON Lines" {
			t.Errorf("%s: %q", name, doc)
		}
	}
}
