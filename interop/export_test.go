package interop

// StartCommand starts a program that obeys commands as Peer.java does.
var StartCommand = start
