package program_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/llmtop/llmtop/cmd"
)

// scratch is a folder for build results of these tests, removed at their end.
var scratch string

func TestMain(m *testing.M) {
	// The program starts itself for some of its work. This program then has a command in place of the flags of go test: run
	// as tests, it would start all of them again.
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		cmd.Main()
		return
	}
	testscript.Main(tests{m}, map[string]func(){"llmtop": cmd.Main})
}

// tests runs the tests of this package with their scratch folder.
type tests struct{ *testing.M }

func (t tests) Run() int {
	var err error
	if scratch, err = os.MkdirTemp("", "llmtop-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	if signal.Ignored(syscall.SIGHUP) { // by nohup: the program would inherit that, and tests hang it up
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	if err := flag.Set("test.parallel", "4"); err != nil { // most tests wait for programs
		panic(err)
	}
	return t.M.Run()
}

// TestScripts runs testdata/script/*.txtar, the command line without a terminal.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"ids": tokenIDs, "truncate": truncate, "waitfor": waitFor,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/config")
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/state")
			return os.WriteFile(env.WorkDir+"/capture.pcap", captured(), 0o600)
		},
	})
}

// tokenIDs is the script command "ids REPORT FILE": it writes the token IDs of the requests of a report, one request
// per line.
func tokenIDs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ids REPORT FILE")
	}
	var report struct {
		Requests []struct{ Tokens []struct{ ID int32 } }
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &report))
	var out []byte
	for _, r := range report.Requests {
		if len(r.Tokens) == 0 {
			ts.Fatalf("a request of %s has no tokens", args[0])
		}
		out = fmt.Appendln(out, r.Tokens)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), out, 0o600))
}

// truncate is the script command "truncate FILE": it cuts off the last hundred bytes.
func truncate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: truncate FILE")
	}
	path := ts.MkAbs(args[0])
	info, err := os.Stat(path)
	ts.Check(err)
	ts.Check(os.Truncate(path, info.Size()-100))
}

// waitFor is the script command "waitfor FILE": it returns when the file exists.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitfor FILE")
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		} else if time.Now().After(deadline) {
			ts.Fatalf("%s did not appear: %v", args[0], err)
		}
	}
}
