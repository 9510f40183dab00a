package zkpath

// FixForNamespace returns where path of a client with namespace ns is on the server: "/ns/a" for "/a".
// Without a namespace that is path itself. The error is that of [Validate] for path and sequential; ns is not
// looked at, see [ValidateNamespace]. A slash at the end, which the path of a sequential node may have,
// stays.
//
// In Java: ZKPaths.fixForNamespace, which loses that slash: there "/a/" in "ns" makes "/ns/a0000000000".
func FixForNamespace(ns, path string, sequential bool) (string, error) {
	if err := Validate(path, sequential); err != nil {
		return "", err
	}
	switch {
	case ns == "":
		return path, nil
	case path == "/" && !sequential:
		return "/" + ns, nil
	}
	return "/" + ns + path, nil
}

// StripNamespace returns the path that a client with namespace ns uses for path on the server: "/a" for
// "/ns/a", and the root for "/ns". What is not below the namespace stays as it is.
//
// In Java: NamespaceImpl.unfixForNamespace, which also takes "/nsfoo" for a path below "ns".
func StripNamespace(ns, path string) string {
	if ns == "" || len(path) <= len(ns) || path[0] != '/' || path[1:1+len(ns)] != ns {
		return path
	}
	switch rest := path[1+len(ns):]; {
	case rest == "":
		return "/"
	case rest[0] == '/':
		return rest
	}
	return path
}
