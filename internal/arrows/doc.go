// Package arrows holds no code: its test pins which package may import which.
//
// The direction is
//
//	examples → recipes/* → framework → builders → callbacks, retry, zkpath → the engine
//
// where the engine is internal/exec, internal/wire and what they import. Test support, as internal/testenv, stands
// above the client. Outside of this module the library stands on three dependencies. The test reads the import clauses
// of every Go file in the repository, so it also sees files that are not built on this system. A package without a rule
// fails it: whoever adds a package decides where it stands.
package arrows
