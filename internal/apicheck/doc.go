// Package apicheck holds no code: its tests pin what the public packages export.
//
// testdata/api.txt has one line for each exported constant, variable, function, type, field and method, with its
// type. A change of the API is therefore a change of that file, which a reviewer reads. After a change that is meant:
//
//	go test ./internal/apicheck -update
//
// A second test fails when an exported declaration names a type of an internal package: a user can neither write that
// type nor read about it.
package apicheck
