package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/gocurator/curator/cmd/curator/internal/output"
	"github.com/gocurator/curator/cmd/curator/internal/recognize"
	"github.com/gocurator/curator/framework"
	"github.com/gocurator/curator/zkpath"
)

// service is an instance of a service, as JSON and YAML have it.
type service struct {
	holder
	Name       string          `json:"name"`
	Port       int             `json:"port,omitempty"`
	SSLPort    int             `json:"sslPort,omitempty"`
	Enabled    bool            `json:"enabled"`
	Type       string          `json:"type"`
	Payload    json.RawMessage `json:"payload,omitempty"`
	Registered *time.Time      `json:"registered,omitempty"`
	URI        string          `json:"uri,omitempty"` // of the instance's template
}

func newService(p recognize.Participant) service {
	in := p.Service
	s := service{
		holder: newHolder(p), Name: cmp.Or(in.Name, zkpath.Node(p.Path)), Port: in.Port, SSLPort: in.SSLPort,
		Enabled: !in.Disabled, Type: in.Type.String(), Payload: in.Payload, URI: in.URI(nil),
	}
	// It has a member of its own.
	s.Note = ""
	if y := in.RegistrationTime.Year(); !in.RegistrationTime.IsZero() && y >= 0 && y <= 9999 { // JSON has no other times
		s.Registered = &in.RegistrationTime
	}
	if len(s.Payload) > 0 && !json.Valid(s.Payload) { // Jackson takes more than JSON
		s.Payload, _ = json.Marshal(string(s.Payload)) // of a string there is no error
	}
	return s
}

func (a *app) services() *cobra.Command {
	return &cobra.Command{
		Use:   "services [PATH]",
		Short: "Print the instances of services",
		Long: `Services prints the instances that are registered with service discovery at and below a node: all that package
discovery reads and that have a name or an address. Those with a session vanish with it; those without, which are static
or permanent, may be long dead. One that is not ENABLED is registered, and no provider chooses it. With -o json it has
the name, the address, both ports, the type, the payload and the time of the registration.`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := rootOf(args)
			return a.withClient(cmd, func(ctx context.Context, client *framework.Client) error {
				t, err := a.look(ctx, client, root, allData)
				if err != nil {
					return err
				}
				found := recognize.Instances(listing(t))
				err = unreadable(t, t.Paths())
				if len(found) == 0 && err == nil {
					a.say("no instances at or below " + root)
				}
				return errors.Join(a.printServices(found), err)
			})
		},
		ValidArgsFunction: a.completePath,
	}
}

func (a *app) printServices(found []recognize.Participant) error {
	header := []string{"SERVICE", "ID", "ADDRESS", "SSL", "ENABLED", "TYPE", "FOR", "SESSION", "PAYLOAD"}
	w, now := output.New(a.Stdout, a.format, header...), time.Now()
	for _, p := range found {
		s := newService(p)
		ssl, payload := "-", "-"
		if s.SSLPort != 0 {
			ssl = strconv.Itoa(s.SSLPort)
		}
		if len(s.Payload) > 0 && string(s.Payload) != "null" {
			payload = preview(s.Payload)
		}
		w.Row(s, printable(s.Path), printable(s.ID), dash(printable(s.Address)), ssl, strconv.FormatBool(s.Enabled),
			s.Type, age(now, s.Since), dash(s.Session), payload)
	}
	return w.Close()
}

// say prints a line for people on the standard error: what the output does not say.
func (a *app) say(text string) { fmt.Fprintln(a.Stderr, "curator:", line(text)) }
