package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
)

// requestsOf returns how many requests a server has received on the connection of a session: the handshake and pings,
// too. It is 0 if the server does not tell.
func requestsOf(ctx context.Context, server string, session int64) (int64, error) {
	answer, err := fourLetterWord(ctx, server, "cons")
	if err != nil {
		return 0, err
	}
	pattern := fmt.Sprintf(`recved=(\d+),\S*sid=0x%x,`, uint64(session))
	found := regexp.MustCompile(pattern).FindStringSubmatch(answer)
	if found == nil {
		return 0, nil
	}
	return strconv.ParseInt(found[1], 10, 64)
}

// fourLetterWord sends one of ZooKeeper's four-letter words and returns the answer.
func fourLetterWord(ctx context.Context, server, word string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", server)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}
