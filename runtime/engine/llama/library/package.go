// Package library finds and installs the libraries of llama.cpp. To install, it fetches the package of the platform
// with the user's npm, verifies it with the hash in this file, and unpacks it in the user's data folder.
package library

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Package is an npm package with the libraries of llama.cpp for one platform.
type Package struct {
	OS, Arch  string // Go names
	Device    string // device besides the CPU: "cuda", "vulkan"; "" for the package that every machine of the platform can use
	Name      string // without scope, for example "linux-x64"
	Version   string // version of the package
	Integrity string // SHA-512 of the archive in npm's form: "sha512-" and base64
	Size      int64  // size of the archive in bytes
}

// scope is the npm scope of all packages.
const scope = "@node-llama-cpp/"

// Spec returns the package and its version in npm's form.
func (p Package) Spec() string { return scope + p.Name + "@" + p.Version }

// Folder returns the name of the folder for the unpacked package.
func (p Package) Folder() string { return p.Version + "-" + p.Name }

// archive returns the file name that npm pack gives the archive.
func (p Package) archive() string {
	return strings.ReplaceAll(strings.TrimPrefix(scope, "@"), "/", "-") + p.Name + "-" + p.Version + ".tgz"
}

// libraries returns the folder of the libraries within the package, with slashes.
func (p Package) libraries() string { return path.Join("bins", p.Name) }

// packages are the pinned packages. Those for macOS and Windows have not been published since 3.21.1.
var packages = []Package{
	{
		"linux", "amd64", "", "linux-x64", "3.22.1",
		"sha512-5uCCDNqWCNfaAm8aR/Uzxbo4HBpKgNF91kCHPepKhgMgV2OAmatoefbOlMihsqCiH2Od35E/eUHQCFbfRBJuOg==", 10824547,
	},
	{
		"linux", "amd64", "cuda", "linux-x64-cuda", "3.22.1",
		"sha512-8rQCjyNNLZJUFit+YpjwlC4hwkKgOMIkB2wuycKBf8NU2O3ySKbiWZQ8aw9ku2nUTXjSnUIrE6KB88itduTBuA==", 142898030,
	},
	{
		"linux", "amd64", "vulkan", "linux-x64-vulkan", "3.22.1",
		"sha512-bBxqU+JOcBu1nb5Qj2zcMci+JByT1E8EajHvYodyNfVIPkEhXh+/HMwR1/BT7xP08YK0hks+kM8fglER0P8JEg==", 24311427,
	},
	{
		"linux", "arm64", "", "linux-arm64", "3.22.1",
		"sha512-W+7naKCXX9/eEjjFmRS8vvx91QyLXDbeFxexZc3bh/PtQABZgmRL3C0AtYYXn4YGTj/3Qor4lWZn2tpjZFPLdQ==", 7340902,
	},
	{
		"darwin", "arm64", "", "mac-arm64-metal", "3.21.1",
		"sha512-6MIDAZV7DXD9R1+jEXWJkFuolni3GATGE6mmuyFYc6ZmtOh9djAy15df0T0AXK3sCmVKL+fQcOAWZezxx4MvQQ==", 4858447,
	},
	{
		"darwin", "amd64", "", "mac-x64", "3.21.1",
		"sha512-Q4nyNmbcNiKygBZQZjX+qLk2w3YzoiFpLWsxNURQN7xjyUi2p2rWxjRa7Otg0FrjGf/ri4aQ+X3Uj5Y0zD06eg==", 10809280,
	},
	{
		"windows", "amd64", "", "win-x64", "3.21.1",
		"sha512-JcIpCnra7bAd7JNWA8ehdn2DIRaTMuj+fBC8bw+5rKSNzszWFbuj2XA05c5QHovonDMBLN1ePXE/hcfZtzXoUQ==", 9787045,
	},
	{
		"windows", "amd64", "cuda", "win-x64-cuda", "3.21.1",
		"sha512-PLz70neFEMkQTlmJqG1ujUtCSgHasLPMxQ9rLkqQVmZYAXqkRj+45TIHCjdn3XqUeaoun0vrO9rRaxZ8NVq9jg==", 138542727,
	},
	{
		"windows", "amd64", "vulkan", "win-x64-vulkan", "3.21.1",
		"sha512-HJ237Azh5m4Sz+w3A1IU/fYLaSDOocskcfn2ILTgqTuuORCB86EMnu3Yt/XsNhRHTtEiwz1Q/E0mO4PLIbZLAA==", 26619567,
	},
	{
		"windows", "arm64", "", "win-arm64", "3.21.1",
		"sha512-/UDR7Y0B8iKfc/tqxBmWkcgRdZQ9Wrkwod7fYl4J6iZXcTIj286RkHvZSED7VMY67TrcUXVvxJVMNFtmjeYnDg==", 4606830,
	},
}

// ErrNoPackage means that there is no package for a platform or device.
var ErrNoPackage = errors.New("no llama.cpp package")

// pick returns the package for a platform and a device. The error lists the available devices.
func pick(from []Package, goos, goarch, device string) (Package, error) {
	var devices []string
	for _, p := range from {
		if p.OS != goos || p.Arch != goarch {
			continue
		}
		if p.Device == device {
			return p, nil
		}
		if p.Device != "" {
			devices = append(devices, p.Device)
		}
	}
	switch {
	case !slices.ContainsFunc(from, func(p Package) bool { return p.OS == goos && p.Arch == goarch }):
		return Package{}, fmt.Errorf("%w for %s/%s: set %s to a folder with its libraries", ErrNoPackage, goos, goarch, Named)
	case len(devices) == 0:
		return Package{}, fmt.Errorf("%w for %q on %s/%s", ErrNoPackage, device, goos, goarch)
	}
	return Package{}, fmt.Errorf("%w for %q on %s/%s: available for %s", ErrNoPackage, device, goos, goarch, strings.Join(devices, " and "))
}
