package kerberos

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	// kdcTimeout bounds a request to one KDC, so that another one has its turn.
	kdcTimeout = 3 * time.Second
	// maxReply bounds the reply of a KDC. Tickets of Active Directory have some 100 KB at most.
	maxReply = 1 << 20
)

// errNoAnswer is for KDCs that do not answer: it may pass.
var errNoAnswer = errors.New("no KDC answers")

// ask sends a request to the KDCs of a realm, until one answers: by TCP, and then by UDP, for those that have nothing
// else.
func ask(ctx context.Context, c *config, realm string, request []byte) ([]byte, error) {
	addrs, err := c.findKDCs(ctx, realm)
	if err != nil {
		return nil, err
	}
	var failures []string
	for _, try := range []struct {
		network string
		send    func(net.Conn, []byte) ([]byte, error)
	}{{"tcp", sendTCP}, {"udp", sendUDP}} {
		for _, addr := range addrs {
			reply, err := askOne(ctx, try.network, addr, func(conn net.Conn) ([]byte, error) { return try.send(conn, request) })
			if err == nil {
				return reply, nil
			}
			failures = append(failures, err.Error())
			if ctx.Err() != nil {
				return nil, fmt.Errorf("%w for realm %s (%s): %w", errNoAnswer, realm, strings.Join(failures, "; "), ctx.Err())
			}
		}
	}
	return nil, fmt.Errorf("%w for realm %s (%s)", errNoAnswer, realm, strings.Join(failures, "; "))
}

// errNoKDC is a fault of the configuration.
var errNoKDC = errors.New("the configuration names no KDC")

func (c *config) findKDCs(ctx context.Context, realm string) ([]string, error) {
	if addrs := c.kdcs[realm]; len(addrs) > 0 {
		return addrs, nil
	}
	if !c.dnsLookupKDC {
		return nil, fmt.Errorf("%w for realm %s, and dns_lookup_kdc is off", errNoKDC, realm)
	}
	_, records, err := net.DefaultResolver.LookupSRV(ctx, "kerberos", "tcp", realm)
	if err != nil {
		return nil, fmt.Errorf("%w for realm %s: krb5.conf names none, and the DNS: %w", errNoAnswer, realm, err)
	}
	var addrs []string
	for _, r := range records {
		addrs = append(addrs, net.JoinHostPort(strings.TrimSuffix(r.Target, "."), strconv.Itoa(int(r.Port))))
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("%w for realm %s", errNoKDC, realm)
	}
	return addrs, nil
}

// askOne connects to a KDC and has send send the request. The context bounds both.
func askOne(ctx context.Context, network, addr string, send func(net.Conn) ([]byte, error)) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, kdcTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	reply, err := askOn(ctx, conn, send)
	if err == nil && len(reply) == 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", network, addr, err)
	}
	return reply, nil
}

// askOn closes the connection.
func askOn(ctx context.Context, conn net.Conn, send func(net.Conn) ([]byte, error)) ([]byte, error) {
	defer conn.Close() //nolint:errcheck // the reply is there, or there is an error
	// The deadline of the context is not set: what ends the context early must end the request too.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	return send(conn)
}

func sendTCP(conn net.Conn, request []byte) ([]byte, error) {
	if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...)); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxReply {
		return nil, fmt.Errorf("a reply of %d bytes is too long", n)
	}
	reply := make([]byte, n)
	_, err := io.ReadFull(conn, reply)
	return reply, err
}

func sendUDP(conn net.Conn, request []byte) ([]byte, error) {
	if _, err := conn.Write(request); err != nil {
		return nil, err
	}
	reply := make([]byte, 1<<16)
	n, err := conn.Read(reply)
	return reply[:n], err
}
