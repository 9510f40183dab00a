package docs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	linkPattern    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	headingPattern = regexp.MustCompile(`^#{1,6} (.+)$`)
	notInAnchor    = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestLinksOfPagesExist checks that every relative link leads to a file, and its anchor to a heading of that file.
func TestLinksOfPagesExist(t *testing.T) {
	t.Parallel()
	pages := append(glob(t, "*.md", "design/*.md", "porting/*.md"), glob(t, "../*.md")...)
	links := 0
	for _, page := range pages {
		for _, link := range linkPattern.FindAllStringSubmatch(strings.Join(prose(readPage(t, page)), ""), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			links++
			name, anchor, hasAnchor := strings.Cut(link[1], "#")
			target := page
			if name != "" {
				target = filepath.Join(filepath.Dir(page), name)
			}
			if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: no file for the link %s", page, link[1])
			} else if hasAnchor && !anchors(readPage(t, target))[anchor] {
				t.Errorf("%s: no heading for the link %s", page, link[1])
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links were found", links)
	}
}

// TestPortingChaptersAreLinked checks that the index links each chapter, and so does the page of its recipe.
func TestPortingChaptersAreLinked(t *testing.T) {
	t.Parallel()
	index := readPage(t, "porting-from-java.md")
	for _, chapter := range glob(t, "porting/*.md") {
		link := "](" + filepath.ToSlash(chapter)
		if !strings.Contains(index, link+")") {
			t.Errorf("porting-from-java.md does not link %s", chapter)
		}
		recipe := filepath.Base(chapter)
		if _, err := os.Stat(recipe); err == nil && !strings.Contains(readPage(t, recipe), link) {
			t.Errorf("%s does not link %s", recipe, chapter)
		}
	}
}

// prose returns the lines of a page that are not in a block of code.
func prose(page string) (lines []string) {
	inside := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inside = !inside
		} else if !inside {
			lines = append(lines, line)
		}
	}
	return lines
}

// anchors returns the anchors that GitHub gives to the headings of a page.
func anchors(page string) map[string]bool {
	found := make(map[string]bool)
	for _, line := range prose(page) {
		if heading := headingPattern.FindStringSubmatch(strings.TrimSuffix(line, "\n")); heading != nil {
			text := notInAnchor.ReplaceAllString(strings.ToLower(heading[1]), "")
			found[strings.ReplaceAll(text, " ", "-")] = true
		}
	}
	return found
}
