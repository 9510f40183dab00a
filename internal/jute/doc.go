// Package jute encodes and decodes the records of the ZooKeeper protocol. It has no sockets, sessions or frame lengths.
//
// Writing appends to a buffer of the caller, so a request costs no allocation when the buffer has room:
//
//	b = jute.AppendRequestHeader(b, jute.RequestHeader{Xid: 1, Op: jute.OpGetData})
//	b = jute.AppendRequest(b, chroot, &jute.Request{Op: jute.OpGetData, Path: "/a", Watch: true})
//
// Reading goes through [Decoder], which checks every bound and keeps the first error:
//
//	header, body, err := jute.DecodeReplyHeader(frame)
//	err = jute.DecodeReply(jute.OpGetData, body, &reply)
//
// Everything is big endian. A string or a buffer is an int32 length and its bytes, a vector an int32 count
// and its elements; a length of -1 stands for Java's null.
//
// # Errors
//
// Malformed input is an error that wraps [ErrMarshalling]. A server's error is a [Code]; [Code.Err] returns the error
// for errors.Is, which is go-zookeeper's if it has one.
//
// # Trust
//
// Input is hostile until decoded. No input makes a decoder panic, and memory grows with the bytes received,
// not with the lengths they claim. Bytes after the end of a record are ignored, as in Java, since later
// releases add fields there; [DecodeConnectResponse] is the exception.
package jute
