package docs_test

import (
	"os"
	"path"
	"regexp"
	"testing"
)

// A name without a directory is in the directory of the one before it.
func TestArchitectureNamesFilesThatExist(t *testing.T) {
	page, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`([a-z_/]+\\.go)`").FindAllStringSubmatch(string(page), -1)
	if len(names) < 40 {
		t.Fatalf("%d names", len(names))
	}
	dir := ""
	for _, name := range names {
		file := name[1]
		if path.Dir(file) == "." {
			file = path.Join(dir, file)
		}
		dir = path.Dir(file)
		if _, err := os.Stat(path.Join("..", file)); err != nil {
			t.Error(err)
		}
	}
}
