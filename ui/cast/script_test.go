package cast

import (
	"strings"
	"testing"
	"time"
)

// validKey accepts the keys of these tests.
func validKey(key string) bool { return len(key) == 1 || key == "enter" || key == "down" }

func TestScriptIsReadInOrder(t *testing.T) {
	script, err := ParseScript(`
# a demo
[[step]]
wait = "1.5s"
[[step]]
key = "2"
[[step]]
keys = ["down", "enter"]
every = "50ms"
[[step]]
type = "日x"
[[step]]
resize = "160x45"
[[step]]
wait_for = "running"
within = "3s"
[[step]]
marker = "the end"
`, validKey)
	if err != nil {
		t.Fatal(err)
	}
	want := []action{
		{line: 3, step: 1, wait: 1500 * time.Millisecond},
		{line: 5, step: 2, key: "2", pause: keyInterval},
		{line: 7, step: 3, key: "down", pause: 50 * time.Millisecond},
		{line: 7, step: 3, key: "enter", pause: 50 * time.Millisecond},
		{line: 10, step: 4, typed: '日', pause: typeInterval},
		{line: 10, step: 4, typed: 'x', pause: typeInterval},
		{line: 12, step: 5, w: 160, h: 45},
		{line: 14, step: 6, text: "running", pause: 3 * time.Second},
		{line: 17, step: 7, marker: "the end"},
	}
	if len(script.actions) != len(want) {
		t.Fatalf("%d actions, want %d: %+v", len(script.actions), len(want), script.actions)
	}
	for i, m := range script.actions {
		if m != want[i] {
			t.Errorf("action %d is %+v, want %+v", i, m, want[i])
		}
	}
}

func TestScriptErrorsNameLineAndField(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"", "0 steps: write"},
		{"[[step]]\nwait = \"2s\"\nkey = \"2\"\n", "line 2: wait: a step has one action, and this one also has key"},
		{"[[step]]\n\nwait = 2\n", `line 3: wait: "2": must be a time in quotes`},
		{"[[step]]\nwait = \"-1s\"\n", `line 2: wait: "-1s": must be a time`},
		{"[[step]]\nwait = \"9h\"\n", `line 2: wait: "9h": must be a time`},
		{"[[step]]\nkey = \"2\"\n[[step]]\nkeys = [\"down\",\n \"Enter\"]\n", `line 4: keys: unknown key "Enter"`},
		{"[[step]]\nkey = 2\n", `line 2: key: unknown key "2"`},
		{"[[step]]\nkeys = []\n", "line 2: keys: must be a list"},
		{"[[step]]\nsleep = \"1s\"\n", "line 2: sleep: unknown field: use one of wait, key"},
		{"[[step]]\nresize = \"160*45\"\n", `line 2: resize: "160*45": must be COLUMNSxROWS, 20x5 to 500x200`},
		{"[[step]]\nresize = \"1x1\"\n", `line 2: resize: "1x1": must be`},
		{"[[step]]\ntype = \"a\\u001b\"\n", "line 2: type:"},
		{"[[step]]\nwait = \"1s\"\nwithin = \"1s\"\n", "line 3: within: only allowed with wait_for"},
		{"[[step]]\n", "line 1: step: no action"},
		{"step = [{wait = \"1s\"}, {wait = \"x\"}]\n", "step 2: wait:"},
		{"[[steps]]\nwait = \"1s\"\n", `unknown table or key "steps"`},
		{"[[step]]\nwait = \"1s\n", "line 2: "},
		{"step = 3\n", "step"},
		{strings.Repeat("#", maxScript+1), "1048577 bytes: at most"},
	} {
		_, err := ParseScript(c.script, validKey)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: %v, want %q in one line", c.script, err, c.want)
		}
	}
}

// FuzzParseScript checks that any file gives a valid script or a one-line error.
func FuzzParseScript(f *testing.F) {
	for _, s := range []string{
		"[[step]]\nwait = \"2s\"\n", "[[step]]\nkeys = [\"down\", 3]\n", "step = [{type = \"日\", every = \"1ms\"}]", "[[step]]\nresize = \"99x\"",
		"[[step]]\nwait_for = \"\"\"\na\nb\"\"\"", "[step]\nkey=1", "[[step]]\n[[step.wait]]\n", "\x00", "[[step]]\nwithin = 1979-05-27\nwait_for='x'",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		script, err := ParseScript(text, validKey)
		switch {
		case err != nil && strings.Contains(err.Error(), "\n"):
			t.Fatalf("an error of several lines: %v", err)
		case err != nil:
			return
		}
		for _, m := range script.actions {
			if m.step < 1 || m.wait < 0 || m.pause < 0 || m.key != "" && !validKey(m.key) || m.w < 0 || m.w > MaxCols || m.h > MaxRows {
				t.Fatalf("the script has the action %+v", m)
			}
		}
	})
}
