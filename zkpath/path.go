package zkpath

import "strings"

// sequenceDigits is how many digits a server appends to the name of a sequential node.
const sequenceDigits = 10

// Join puts parent and children together to one path, with one slash between them and one at the beginning.
// Every part may have a slash at either end or not; those that are empty or just a slash add nothing, and
// nothing at all is the root.
//
// In Java: ZKPaths.makePath.
func Join(parent string, children ...string) string {
	size := 1 + len(parent)
	for _, child := range children {
		size += 1 + len(child)
	}
	var b strings.Builder
	b.Grow(size)
	if parent != "" && parent != "/" {
		writePart(&b, parent)
	}
	for _, child := range children {
		if child != "" && child != "/" {
			writePart(&b, child)
		}
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

// writePart takes off one slash at either end, not all: "a//b" in parts stays as invalid as it is in one.
func writePart(b *strings.Builder, part string) {
	b.WriteByte('/')
	b.WriteString(strings.TrimSuffix(strings.TrimPrefix(part, "/"), "/"))
}

// Split returns the names that path consists of, none for the root.
//
// In Java: ZKPaths.split.
func Split(path string) []string {
	var names []string
	for name := range strings.SplitSeq(path, "/") {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Parent returns path without its last name. The parent of the root is the root.
//
// In Java: ZKPaths.getPathAndNode(path).getPath.
func Parent(path string) string {
	parent, _ := PathAndNode(path)
	return parent
}

// Node returns the last name of path, which is empty for the root.
//
// In Java: ZKPaths.getNodeFromPath.
func Node(path string) string {
	_, node := PathAndNode(path)
	return node
}

// PathAndNode returns the parent of path and its last name: "/a" and "b" for "/a/b", "/" and "" for the root.
// The last name of a path that ends with a slash, as that of a sequential node may, is empty.
//
// In Java: ZKPaths.getPathAndNode.
func PathAndNode(path string) (parent, node string) {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 {
		return "/", path[i+1:]
	}
	return path[:i], path[i+1:]
}

// SequentialSuffix returns the digits that a server appended to the path or name of a sequential node: its
// last ten characters, or all of it if there are fewer.
//
// In Java: ZKPaths.extractSequentialSuffix.
func SequentialSuffix(path string) string {
	return path[max(0, len(path)-sequenceDigits):]
}
