//go:build unix

package program_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd"
	"github.com/llmtop/llmtop/cmd/local/fixture"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
)

// evil is text that would write the clipboard, recolour, move and reorder the terminal; marker shows that it was
// printed.
const (
	marker = "EVIL"
	evil   = marker + "\x1b]52;c;UFdORUQ=\x07\x1b[31m\u009b2J\u009d0;x\u009c\u202egnp\u2066\u200b\u2028\x7f\x00\b"
)

// quoted returns evil as a JSON and TOML string.
func quoted(tb testing.TB) string {
	tb.Helper()
	out, err := json.Marshal(evil)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.ReplaceAll(string(out), "\x7f", `\u007f`) // TOML does not allow the character
}

// harmless fails the test if the output of a command could control a terminal. The sequence that llmtop itself uses to
// overwrite a line is allowed.
func harmless(t *testing.T, name string, out []byte) {
	t.Helper()
	text := strings.NewReplacer("\r\x1b[K", "", "\r\n", "\n").Replace(string(out))
	if !utf8.ValidString(text) {
		t.Errorf("%s wrote invalid UTF-8: %q", name, text)
	}
	for _, r := range text {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || strings.ContainsRune("\u061c\u200b\u200e\u200f\u2028\u2029", r) ||
			r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			t.Fatalf("%s wrote %U: %q", name, r, text)
		}
	}
}

// hostileEngine is an event socket that sends lines to everybody; %d in them is the number of the reader's last
// command.
func hostileEngine(t *testing.T, greeting, answer string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "e.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprintln(c, greeting)
				for in := bufio.NewScanner(c); in.Scan(); {
					var asked struct {
						C int `json:"c"`
					}
					if json.Unmarshal(in.Bytes(), &asked) == nil && asked.C > 0 {
						fmt.Fprintf(c, answer+"\n", asked.C)
					}
				}
			}()
		}
	}()
	return "unix:" + path
}

// hostileServer answers every request with a body.
func hostileServer(t *testing.T, status int, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// commands returns commands that read evil, by where it comes from. Those with show set must print marker.
func commands(t *testing.T) map[string]struct {
	args  []string
	shows bool
} {
	t.Helper()
	dir, q := t.TempDir(), quoted(t)
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	hello := func(v, more string) string {
		return `{"t":"hello","v":` + v + `,"name":` + q + `,"a":1,"caps":["generate","tokens"]` + more + `}`
	}
	weights := filepath.Join(dir, "tensor.gguf")
	if err := gguf.NewWriter(3).Set("general.architecture", evil).Set("general.name", evil).WriteFile(weights); err != nil {
		t.Fatal(err)
	}
	template := fixture.Instruct(t, map[string]any{"tokenizer.chat_template": "{{ raise_exception('" + evil + "') }}"})
	report := file("report.json", `{"schema_version":1,"version":`+q+`,"engine":{"name":`+q+`,"version":`+q+`,"device":`+q+`,"state":`+q+`},"model":{"name":`+q+`,"quantisation":`+q+
		`},"configuration":{`+q+`:`+q+`},"requests":[{"id":1,"label":`+q+`,"group":`+q+`,"state":"finished","reason":`+q+`,"ttft_s":1,"e2el_s":2,"tpot_s":1,"ttft_components_s":{`+q+`:1},"dominant_component":`+q+`}],
		"verdicts":[{"severity":"watch","topic":`+q+`,"text":`+q+`,"evidence":`+q+`,"try":`+q+`}]}`)
	broken := hostileServer(t, http.StatusInternalServerError, `{"error":`+q+`}`)
	odd := hostileServer(t, http.StatusOK, `{"object":"list","data":[{"id":`+q+`},{"id":`+q+`}],"version":`+q+`,"status":"error","error":`+q+`}`)
	refusal := hostileServer(t, http.StatusOK, `{"status":"error","error":`+q+`}`)
	bye := hostileEngine(t, hello(`"1.0"`, "")+"\n"+`{"t":"bye","a":2,"why":`+q+`}`, "")
	newer := hostileEngine(t, hello(`"2.`+strings.Trim(q, `"`)+`"`, ""), "")
	refuses := hostileEngine(t, hello(`"1.0"`, `,"model":{"name":`+q+`,"layers":1}`), `{"t":"reply","c":%d,"ok":false,"why":`+strings.ReplaceAll(q, "%", "%%")+`}`)
	return map[string]struct {
		args  []string
		shows bool
	}{
		"bench: body of a 500":              {[]string{"bench", broken, "--requests", "1"}, true},
		"bench: names of models":            {[]string{"bench", odd, "--requests", "1"}, true},
		"bench: version":                    {[]string{"bench", newer}, true},
		"bench: reply":                      {[]string{"bench", refuses, "--requests", "1", "--prompt-tokens", "4", "--warmup", "0"}, true},
		"bench: argument":                   {[]string{"bench", "http://" + evil[:4] + "\x1b[31m"}, true},
		"attach: version":                   {[]string{"attach", newer, "--headless", "--for", "500ms"}, true},
		"attach: bye":                       {[]string{"attach", bye, "--headless", "--for", "500ms"}, true},
		"attach: plain":                     {[]string{"replay", report, "--plain"}, false},
		"attach: report as JSON":            {[]string{"attach", refuses, "--headless", "--for", "500ms", "--json", "-"}, true},
		"attach: server":                    {[]string{"attach", broken, "--headless", "--for", "500ms"}, false},
		"attach: Prometheus":                {[]string{"attach", "prometheus+" + refusal, "--headless", "--for", "500ms"}, true},
		"attach: argument":                  {[]string{"attach", "tcp:" + evil[:5], "--headless", "--for", "500ms"}, true},
		"proxy: argument":                   {[]string{"proxy", "http://EVIL\x1b[2J\u202e"}, true},
		"replay: not a recording":           {[]string{"replay", report}, false},
		"report: text":                      {[]string{"report", report}, true},
		"report: JSON":                      {[]string{"report", report, "--json", "-"}, true},
		"report: JSON Lines":                {[]string{"report", report, "--jsonl", "-"}, true},
		"report: Markdown":                  {[]string{"report", report, "--markdown", "-"}, true},
		"report: HTML":                      {[]string{"report", report, "--html", "-"}, true},
		"report: name of a file":            {[]string{"report", evil[:10]}, true},
		"report: broken":                    {[]string{"report", file("broken.json", `{"schema_version":`+q+`}`)}, false},
		"compare: text":                     {[]string{"compare", report, report}, true},
		"compare: JSON":                     {[]string{"compare", report, report, "--json", "-"}, true},
		"compare: Markdown":                 {[]string{"compare", report, report, "--markdown", "-"}, false},
		"compare: side":                     {[]string{"compare", "--run", "report " + marker + "\x1b[2J", "--run", "report " + marker + "\x1b[3J"}, true},
		"run: architecture":                 {[]string{"run", weights, "--headless", "-p", "x"}, true},
		"run: exception of a template":      {[]string{"run", template, "--headless", "-p", "x"}, true},
		"run: config":                       {[]string{"run", "--headless", "-p", "x", "--config", file("config.toml", q+" = 1\n")}, true},
		"run: alert":                        {[]string{"run", "--headless", "-p", "x", "--config", file("alerts.toml", "[[alert]]\nname = "+q+"\nwhen = \"nothing > 1\"\n")}, false},
		"serve: architecture":               {[]string{"serve", weights}, true},
		"cast: script":                      {[]string{"cast", "--cast", filepath.Join(dir, "c"), "--script", file("script.toml", "[[do]]\nkey = "+q+"\n")}, false},
		"bench: prompts":                    {[]string{"bench", "--prompts", file("prompts", `{"prompt":"x",`+q+`:1}`)}, false},
		"engine: argument":                  {[]string{"engine", evil[:20]}, true},
		"engine install: argument":          {[]string{"engine", "install", evil[:20]}, true},
		"engine install: archive":           {[]string{"engine", "install", "llamacpp", "--from", evil[:20]}, true},
		"discover: argument":                {[]string{"discover", evil[:20]}, true},
		"version: argument":                 {[]string{"version", evil[:20]}, false},
		"an unknown command":                {[]string{evil[:20]}, true},
		"child: not a specification":        {[]string{"engine-child", evil[:20]}, false},
		"engine list: a folder that is not": {[]string{"engine", "list"}, true},
	}
}

// TestNothingHostileReachesTheTerminal runs every command with hostile names, errors and arguments, with its output in
// a pipe and on a terminal.
func TestNothingHostileReachesTheTerminal(t *testing.T) {
	t.Parallel()
	path := binary(t)
	env := append(os.Environ(), "LLMTOP_DISCOVER=off", "TERM=xterm-256color", "XDG_CONFIG_HOME="+t.TempDir(), "XDG_STATE_HOME="+t.TempDir(),
		"LLMTOP_LLAMA_DIR="+evil[:20])
	piped := func(t *testing.T, args ...string) []byte {
		c := exec.Command(path, args...)
		c.Env = env
		out, err := c.CombinedOutput()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return out
	}
	for name, c := range commands(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := piped(t, c.args...)
			harmless(t, name, out)
			if c.shows && !bytes.Contains(out, []byte(marker)) {
				t.Errorf("it never printed the hostile text: %.500q", out)
			}
			command := exec.Command(path, c.args...)
			command.Env = env
			tty, err := pty.Start(command)
			if err != nil {
				t.Fatal(err)
			}
			shown, _ := io.ReadAll(tty) // ends with an error when the terminal closes
			_ = command.Wait()
			_ = tty.Close()
			harmless(t, name+", on a terminal", shown)
		})
	}
	for command, flag := range numericFlags() {
		t.Run("flags of "+command, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(command)
			if command == "record" {
				args = append(args, "file.llmtop") // with which it is another command
			}
			out := piped(t, append(args, "--"+evil[:20])...)
			if flag != "" {
				out = append(out, piped(t, append(args, "--"+flag, evil[:20])...)...)
			}
			harmless(t, command, out)
			if !bytes.Contains(out, []byte(marker)) {
				t.Errorf("the flag is not named: %q", out)
			}
		})
	}
}

// TestErrorsAreShort checks that long names in files are cut where errors are made, not only where they are printed.
func TestErrorsAreShort(t *testing.T) {
	t.Parallel()
	path := binary(t)
	const longest = 1000 // bytes of an error, with the names of files; below the limit of printed errors
	dir, long := t.TempDir(), strings.Repeat("x", 3<<20)
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	model := func(name string, change func(*gguf.Writer)) string {
		w := gguf.NewWriter(3)
		change(w)
		path := filepath.Join(dir, name)
		if err := w.WriteFile(path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	twice := func() string {
		w := gguf.NewWriter(3).Set(long, "1").Set(long[1:]+"y", "2")
		out, err := w.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		return file("twice.gguf", strings.Replace(string(out), long[1:]+"y", long, 1))
	}
	architecture := model("architecture.gguf", func(w *gguf.Writer) { w.Set("general.architecture", long) })
	tensor := fixture.Instruct(t, nil)
	if data, err := os.ReadFile(tensor); err != nil || os.WriteFile(tensor, data[:len(data)/2], 0o600) != nil {
		t.Fatal(err)
	}
	template := func(s string) string { return fixture.Instruct(t, map[string]any{"tokenizer.chat_template": s}) }
	number := `{"schema_version":1,"requests":[{"id":` + strings.Repeat("9", 3<<20) + `}]}`
	for name, args := range map[string][]string{
		"a metadata key":        {"run", twice(), "--headless", "-p", "x"},
		"an architecture":       {"run", architecture, "--headless", "-p", "x"},
		"a truncated model":     {"run", tensor, "--headless", "-p", "x"},
		"an exception":          {"run", template("{{ raise_exception('a' * 100000) }}"), "--headless", "-p", "x"},
		"a number in a report":  {"report", file("number.json", number)},
		"a version of a report": {"report", file("version.json", `{"schema_version":"`+long+`"}`)},
		"a comparison":          {"compare", file("a.json", `{"schema_version":1,"engine":{"name":"`+long+`"}}`), file("b.json", `{"schema_version":1}`)},
		"a key of the config":   {"run", "--headless", "-p", "x", "--config", file("key.toml", long+" = 1\n")},
		"a value of the config": {"run", "--headless", "-p", "x", "--config", file("value.toml", "threads = \""+long+"\"\n")},
		"broken TOML":           {"run", "--headless", "-p", "x", "--config", file("broken.toml", long+"\n")},
		"an alert":              {"run", "--headless", "-p", "x", "--config", file("alert.toml", "[[alert]]\nname = \"a\"\nwhen = \"queued > 3\"\n"+long+" = 1\n")},
		"a script":              {"cast", "--cast", filepath.Join(dir, "c"), "--script", file("script.toml", "[[step]]\nkey = \""+long[:10_000]+"\"\n")},
		"a field of a prompt":   {"bench", "--prompts", file("prompts", `{"prompt":"x","`+long[:500_000]+`":1}`)},
		"a number in a prompt":  {"bench", "--prompts", file("numbers", `{"prompt":"x","max_tokens":`+strings.Repeat("9", 500_000)+`}`)},
	} {
		t.Run(name, func(t *testing.T) {
			c := exec.Command(path, args...)
			c.Env = append(os.Environ(), "LLMTOP_DISCOVER=off", "XDG_CONFIG_HOME="+t.TempDir(), "XDG_STATE_HOME="+t.TempDir())
			var out, stderr bytes.Buffer
			c.Stdout, c.Stderr = &out, &stderr
			if err := c.Run(); err == nil {
				t.Errorf("it did not fail: %.200q", out.Bytes())
			}
			if stderr.Len() == 0 || stderr.Len() > longest {
				t.Errorf("%d bytes: %.300q", stderr.Len(), stderr.Bytes())
			}
		})
	}
}

// numericFlags returns, for every command, one of its flags that takes only numbers or durations, "" if it has none.
func numericFlags() map[string]string {
	out := map[string]string{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		name := ""
		c.Flags().VisitAll(func(f *pflag.Flag) {
			switch f.Value.Type() {
			case "int", "uint64", "float64", "duration":
				name = f.Name
			}
		})
		out[strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), "llmtop"))] = name
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(cmd.NewRoot())
	return out
}
