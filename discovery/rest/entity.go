package rest

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/gocurator/curator/discovery"
)

// entity is an instance in a body. Its members are in Java's order.
type entity[T any] struct {
	Name             string  `json:"name"`
	ID               string  `json:"id"`
	Address          *string `json:"address"`
	Port             int     `json:"port,omitempty"`
	SSLPort          int     `json:"sslPort,omitempty"`
	RegistrationTime *int64  `json:"registrationTimeUTC"`
	Type             string  `json:"serviceType"`
	Payload          T       `json:"payload"`
}

func entityOf[T any](i discovery.ServiceInstance[T]) entity[T] {
	e := entity[T]{
		Name: i.Name, ID: i.ID, Port: i.Port, SSLPort: i.SSLPort, RegistrationTime: new(int64), Type: i.Type.String(),
		Payload: i.Payload,
	}
	if i.Address != "" {
		e.Address = &i.Address
	}
	if !i.RegistrationTime.IsZero() {
		*e.RegistrationTime = i.RegistrationTime.UnixMilli()
	}
	return e
}

// read returns the instance that a request has in its path and its body.
func read[T any](r *http.Request) (i discovery.ServiceInstance[T], err error) {
	e, err := decode[T](r.Body)
	if err != nil {
		return i, err
	}
	i = discovery.ServiceInstance[T]{
		Name: r.PathValue("name"), ID: r.PathValue("id"), Port: e.Port, SSLPort: e.SSLPort, Payload: e.Payload,
		RegistrationTime: time.Now(), Type: discovery.Static,
	}
	switch {
	case e.Name != "" && e.Name != i.Name:
		return i, refuse(http.StatusBadRequest, "the name is %q in the path and %q in the body", i.Name, e.Name)
	case e.ID != "" && e.ID != i.ID:
		return i, refuse(http.StatusBadRequest, "the id is %q in the path and %q in the body", i.ID, e.ID)
	case min(e.Port, e.SSLPort) < 0 || max(e.Port, e.SSLPort) > math.MaxUint16:
		return i, refuse(http.StatusBadRequest, "%d or %d is no port", e.Port, e.SSLPort)
	}
	switch e.Type {
	case "", discovery.Static.String():
	case discovery.Permanent.String():
		i.Type = discovery.Permanent
	default:
		return i, refuse(http.StatusBadRequest, "serviceType %q is neither %v nor %v",
			e.Type, discovery.Static, discovery.Permanent)
	}
	if e.Address != nil {
		i.Address = *e.Address
	}
	if e.RegistrationTime != nil {
		i.RegistrationTime = time.UnixMilli(*e.RegistrationTime)
	}
	return i, nil
}

// decode reads a body to its end.
func decode[T any](body io.Reader) (e *entity[T], err error) {
	d := json.NewDecoder(body)
	d.UseNumber() // as in the nodes
	switch err = d.Decode(&e); {
	case err == nil && e == nil:
		err = errors.New("null")
	case err == nil:
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return e, nil
		}
		if err == nil {
			err = errors.New("text behind it")
		}
	}
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return e, refuse(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", large.Limit)
	}
	if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
		return e, refuse(http.StatusBadRequest, "no instance: %s: a JSON %s is no %v", kind.Field, kind.Value, kind.Type)
	}
	return e, refuse(http.StatusBadRequest, "no instance: %v", err)
}
