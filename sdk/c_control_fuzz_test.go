package sdk

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// escapedName finds names of members with escapes, which the emitter does not know.
var escapedName = regexp.MustCompile(`\\u[^"]*"\s*:`)

// FuzzControl compares how the emitter reads control messages with encoding/json. It is built with sanitizers if the
// compiler has them.
func FuzzControl(f *testing.F) {
	flags := []string{"-Wno-unused-function"}
	if probe := exec.Command("cc", "-fsanitize=address,undefined", "-x", "c", "-", "-o", "/dev/null"); true {
		probe.Stdin = strings.NewReader("int main(void) { return 0; }")
		if probe.Run() == nil {
			flags = append(flags, "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
		}
	}
	cmd := exec.Command(buildC(f, languageC, "c/testdata/control.c", flags...))
	in, err := cmd.StdinPipe()
	if err != nil {
		f.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		f.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	out := bufio.NewReaderSize(pipe, 1<<20)
	for _, seed := range []string{
		`{"t":"generate","c":1,"prompt":"say \"it\"\n\u00fc\ud83d\ude00\ud83d\\","max":64}`, ` { } `, `{"c":1,"c":2.5e1}`, `{"c":-0}`, `{"prompt":"\u0000"}`,
		`{"c":18446744073709551616}`, `{"c":01}`, `{"c":1.}`, `{"a":[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]}`, `[1]`, `{"prompt":"\x"}`, `{"a":tru}`, "{\"prompt\":\"\t\"}",
		`{"prompt":"\ud83dx\ude00"}`, `{"c":9223372036854775807,}`, `{"c" 1}`, `{"a":{"prompt":"inner"}}`, `{"c":1e400}`, `{"c":0.0000000001e10}`, `{"prompt":"é"}`, "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		if !utf8.ValidString(message) || strings.Contains(message, `\u0000`) || len(message) > 1<<16 || escapedName.MatchString(message) {
			return // encoding/json replaces what is no UTF-8, and the emitter a 0, which would end the text
		}
		sized := binary.NativeEndian.AppendUint32(nil, uint32(len(message)))
		if _, err := io.WriteString(in, string(sized)+message); err != nil {
			t.Fatal(err)
		}
		answer, err := out.ReadString('\n')
		if err != nil {
			t.Fatalf("%q ends the program: %v", message, err)
		}
		want, deep := expected(message)
		if answer = strings.TrimSpace(answer); answer != want && (!deep || answer != "malformed") {
			t.Errorf("%q is read as %s, want %s", message, answer, want)
		}
	})
}

// expected returns what the program prints; deep: the message may be nested too deeply.
func expected(message string) (line string, deep bool) {
	object := map[string]json.RawMessage{}
	if json.Unmarshal([]byte(message), &object) != nil || strings.TrimSpace(message) == "null" {
		return "malformed", false
	}
	deep = strings.Count(message, "[")+strings.Count(message, "{") > 16
	call, real := int64(-1), -1.0
	if v := string(object["c"]); v != "" {
		if x, err := strconv.ParseFloat(v, 64); err == nil {
			real = x
			if n, err := strconv.ParseInt(v, 10, 64); err == nil && v[0] != '-' {
				call = n
			} else if x >= 0 && x < 9.2e18 {
				call = int64(x)
			}
		}
	}
	prompt := "none"
	var text *string
	if json.Unmarshal(object["prompt"], &text) == nil && text != nil {
		prompt = hex.EncodeToString([]byte(*text)) + "."
	}
	return fmt.Sprintf("%d %s %s", call, c6g(real), prompt), deep
}

// c6g formats a number like %.6g of C.
func c6g(v float64) string {
	s := strconv.FormatFloat(v, 'g', 6, 64)
	if v == 0 && strings.HasPrefix(s, "-") {
		return "-0"
	}
	return s
}
