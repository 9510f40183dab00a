package curatortest

import (
	"context"
	"io"
	"net"
)

// fourLetterWord sends a server a command that needs no session, and returns the answer.
func fourLetterWord(ctx context.Context, addr, word string) (string, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	return ask(ctx, c, word)
}

// ask sends the command on a connection, and closes it after the answer.
func ask(ctx context.Context, c net.Conn, word string) (string, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer func() {
		stop()
		_ = c.Close()
	}()
	if _, err := io.WriteString(c, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(c)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return string(answer), err
}
