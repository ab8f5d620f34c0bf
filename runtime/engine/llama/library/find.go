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

// Places are the folders to search for llama.cpp.
type Places struct {
	Named  string   // folder set by the user; "" if none
	Data   string   // folder filled by Install; "" if the user has none
	System []string // folders of the system's library path
}

// Here returns the places of this machine and user.
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

// DataFolder returns the folder of Install, in which each package has its own folder: below $XDG_DATA_HOME or
// ~/.local/share, on macOS below ~/Library/Application Support, on Windows below %LocalAppData%.
func DataFolder() (string, error) {
	base, err := dataHome(ownOS, os.Getenv)
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "llmtop", "engines", "llamacpp"), nil
}

// dataHome returns the folder for a user's application data.
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

// Find lists all candidates, best first: usable ones before unusable ones, then by origin (set by the user, installed,
// system), then newest first, then those with GPU backends before others.
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

// rank returns the sort key of a candidate, lowest first.
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
		n, _ := strconv.Atoi(part) // a part that is not a number counts as oldest
		order = append(order, -n)
	}
	return order
}

// Best returns the candidate to use. A folder set by the user is used or is an error, never skipped.
func Best(found []Candidate) (Candidate, error) {
	for _, c := range found {
		if c.Origin == Named && !c.Usable() {
			return Candidate{}, fmt.Errorf("use the llama.cpp of %s (%s): %s", Named, c.Dir, c.Why)
		}
	}
	if len(found) == 0 {
		return Candidate{}, errors.New("no llama.cpp on this machine; install it with: llmtop engine install llamacpp")
	}
	if best := found[0]; best.Usable() {
		return best, nil
	}
	return Candidate{}, fmt.Errorf("no usable llama.cpp on this machine (%s: %s); install it with: llmtop engine install llamacpp", found[0].Dir, found[0].Why)
}

// installed returns the library folders of the packages in the data folder.
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

// librariesIn returns the folder with the libraries of an unpacked package: its only folder below bins, or the package
// itself.
func librariesIn(pkg string) string {
	below, err := os.ReadDir(filepath.Join(pkg, "bins"))
	if err != nil || len(below) != 1 {
		return pkg
	}
	return filepath.Join(pkg, "bins", below[0].Name())
}

// systemFolders returns the existing folders in which the system's loader finds libraries, each once.
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
	return existingFolders(dirs)
}

// configured returns the folders listed in a configuration file of the dynamic loader.
func configured(name string) []string {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	return loaderFolders(f)
}

// loaderFolders parses the folders in a file in the format of ld.so.conf(5). Its include lines are ignored; the caller
// reads those files.
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

// existingFolders removes folders that do not exist, and duplicates.
func existingFolders(dirs []string) []string {
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
