package library

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Places are where a llama.cpp is looked for.
type Places struct {
	Named  string   // the folder that the user named; "" if none
	Data   string   // the folder that Install fills; "" if the user has none
	System []string // the folders in which the system finds libraries
}

// Here are the places of this machine and user.
func Here() Places {
	data, err := DataFolder()
	if err != nil {
		data = ""
	}
	named := os.Getenv(string(Named))
	if abs, err := filepath.Abs(named); named != "" && err == nil {
		named = abs
	}
	return Places{Named: named, Data: data, System: systemFolders(ownOS, os.Getenv)}
}

// DataFolder is the folder in which Install puts the libraries, each package in one of its own: below $XDG_DATA_HOME or
// ~/.local/share, on macOS below ~/Library/Application Support, on Windows below %LocalAppData%.
func DataFolder() (string, error) {
	base, err := dataHome(ownOS, os.Getenv)
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "llmtop", "engines", "llamacpp"), nil
}

// dataHome is where a user's programs keep data.
func dataHome(goos string, getenv func(string) string) (string, error) {
	home := getenv("HOME")
	switch {
	case goos == "windows":
		if dir := getenv("LocalAppData"); dir != "" {
			return dir, nil
		}
		return "", errors.New("find data folder: %LocalAppData% is not set")
	case goos != "darwin" && filepath.IsAbs(getenv("XDG_DATA_HOME")):
		return getenv("XDG_DATA_HOME"), nil
	case home == "":
		return "", errors.New("find data folder: $HOME is not set")
	case goos == "darwin":
		return filepath.Join(home, "Library", "Application Support"), nil
	}
	return filepath.Join(home, ".local", "share"), nil
}

// Find lists what there is, the best first: what the user named, then what was installed, then the system's, each the newest first and
// with a GPU's backends before without. Those that can be used come before those that cannot.
func (p Places) Find() []Candidate { return p.find(ownOS, ownArch) }

func (p Places) find(goos, goarch string) []Candidate {
	var found []Candidate
	if p.Named != "" {
		c, err := look(p.Named, Named, goos, goarch)
		if err != nil {
			c = Candidate{Origin: Named, Dir: p.Named, Why: err.Error()}
		}
		found = append(found, c)
	}
	for _, dir := range installed(p.Data) {
		c, err := look(dir, Installed, goos, goarch)
		if err != nil {
			c = Candidate{Origin: Installed, Dir: dir, Why: err.Error()}
		}
		found = append(found, c)
	}
	for _, dir := range p.System {
		if c, err := look(dir, System, goos, goarch); err == nil {
			found = append(found, c)
		}
	}
	slices.SortStableFunc(found, func(a, b Candidate) int { return slices.Compare(rank(a), rank(b)) })
	return found
}

// rank orders candidates, the least first.
func rank(c Candidate) []int {
	unusable, noDevice := 0, 0
	if !c.Usable() {
		unusable = 1
	}
	if c.Device == "" {
		noDevice = 1
	}
	order := []int{unusable, slices.Index([]Origin{Named, Installed, System}, c.Origin), noDevice}
	for part := range strings.SplitSeq(c.Release, ".") {
		n, _ := strconv.Atoi(part) // what is no number counts as the oldest
		order = append(order, -n)
	}
	return order
}

// Best is the candidate to use. What the user named is used or refused, never passed over.
func Best(found []Candidate) (Candidate, error) {
	for _, c := range found {
		if c.Origin == Named && !c.Usable() {
			return Candidate{}, fmt.Errorf("use the llama.cpp of %s (%s): %s", Named, c.Dir, c.Why)
		}
	}
	if len(found) == 0 {
		return Candidate{}, errors.New("there is no llama.cpp on this machine; get it with: llmtop engine install llamacpp")
	}
	if best := found[0]; best.Usable() {
		return best, nil
	}
	return Candidate{}, fmt.Errorf("no llama.cpp on this machine can be used (%s: %s); get one with: llmtop engine install llamacpp", found[0].Dir, found[0].Why)
}

// installed are the library folders of the packages in the data folder.
func installed(data string) []string {
	if data == "" {
		return nil
	}
	entries, err := os.ReadDir(data)
	if err != nil {
		return nil
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			dirs = append(dirs, librariesIn(filepath.Join(data, e.Name())))
		}
	}
	return dirs
}

// librariesIn is the folder with the libraries in an unpacked package: its only one below bins, or else the package itself.
func librariesIn(pkg string) string {
	below, err := os.ReadDir(filepath.Join(pkg, "bins"))
	if err != nil || len(below) != 1 {
		return pkg
	}
	return filepath.Join(pkg, "bins", below[0].Name())
}

// systemFolders are those in which a system's loader finds libraries, without doubles and without those that are not there.
func systemFolders(goos string, getenv func(string) string) []string {
	var dirs []string
	switch goos {
	case "windows":
		dirs = filepath.SplitList(getenv("PATH"))
	case "darwin":
		dirs = append(filepath.SplitList(getenv("DYLD_LIBRARY_PATH")), "/opt/homebrew/lib", "/usr/local/lib", "/opt/local/lib")
	default:
		dirs = append(filepath.SplitList(getenv("LD_LIBRARY_PATH")), "/usr/local/lib", "/usr/local/lib64")
		configs, _ := filepath.Glob("/etc/ld.so.conf.d/*.conf") // the pattern is well-formed
		for _, name := range append(configs, "/etc/ld.so.conf") {
			dirs = append(dirs, configured(name)...)
		}
		multiarch, _ := filepath.Glob("/usr/lib/*-linux-gnu*")
		dirs = append(append(dirs, multiarch...), "/usr/lib64", "/usr/lib", "/lib64", "/lib", "/home/linuxbrew/.linuxbrew/lib")
	}
	return real(dirs)
}

// configured are the folders that a file of the dynamic loader's configuration names.
func configured(name string) []string {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	return loaderFolders(f)
}

// loaderFolders reads the lines of ld.so.conf(5) that are folders. What it includes is read by itself.
func loaderFolders(r io.Reader) []string {
	var dirs []string
	lines := bufio.NewScanner(io.LimitReader(r, 1<<20))
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "/") {
			dirs = append(dirs, filepath.Clean(line))
		}
	}
	return dirs
}

// real leaves out folders that are not there, and those that are the same as one before.
func real(dirs []string) []string {
	var kept []string
	seen := map[string]bool{}
	for _, d := range dirs {
		if !filepath.IsAbs(d) {
			continue
		}
		resolved, err := filepath.EvalSymlinks(d)
		if err != nil || seen[resolved] {
			continue
		}
		seen[resolved] = true
		kept = append(kept, d)
	}
	return kept
}
