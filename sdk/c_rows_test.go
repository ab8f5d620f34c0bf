package sdk

import (
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestRowsOfC writes the stages of more requests than are kept: the engine reports how many are missing. Its own stages
// and those of live requests are always included.
func TestRowsOfC(t *testing.T) {
	t.Parallel()
	const most = 1 << 16
	name := filepath.Join(t.TempDir(), "rows.csv")
	cmd := exec.Command(buildC(t, languageC, "c/testdata/rows.c"), name)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+filepath.Dir(Socket(t)))
	out, err := cmd.CombinedOutput()
	if want := "65538 rows, 3 missing\n65538 rows, 3 missing\n-1\n"; err != nil || string(out) != want {
		t.Errorf("%v, the engine prints %q, want %q", err, out, want)
	}
	rows := rowsOf(t, name)
	if len(rows) != 1+1+most+1 {
		t.Fatalf("%d lines", len(rows))
	}
	for i, want := range map[int]string{0: "stage", 1: `stage, "warm"`, 2: "prompt", 1 + most: "prompt", 2 + most: "decode"} {
		if rows[i][0] != want {
			t.Errorf("line %d is %v, want %s", i, rows[i], want)
		}
	}
}

// rowsOf reads a CSV.
func rowsOf(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
