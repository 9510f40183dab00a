//go:build linux

package cli

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/gocurator/curator/internal/testenv"
	"github.com/gocurator/curator/internal/testenv/testclient"
)

// probe is a probe of a container.
type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

// container has what the tests need of a container in the manifest.
type container struct {
	Name  string
	Args  []string
	Ports []struct {
		Name          string
		ContainerPort string `yaml:"containerPort"`
	}
	Env []struct {
		Name      string
		ValueFrom struct {
			FieldRef struct {
				FieldPath string `yaml:"fieldPath"`
			} `yaml:"fieldRef"`
			ConfigMapKeyRef struct{ Name, Key string } `yaml:"configMapKeyRef"`
		} `yaml:"valueFrom"`
	}
	ReadinessProbe probe `yaml:"readinessProbe"`
	LivenessProbe  probe `yaml:"livenessProbe"`
}

// manifest returns the sidecar and the app of the manifest, and the data of its ConfigMaps by name.
func manifest(t *testing.T) (sidecar, app container, configs map[string]map[string]string) {
	t.Helper()
	file, err := os.Open("../../kubernetes/elect.yaml")
	testclient.Must(t, err)
	defer file.Close() //nolint:errcheck // it was read only
	configs = map[string]map[string]string{}
	for d := yaml.NewDecoder(file); ; {
		var object struct {
			Kind     string
			Metadata struct{ Name string }
			Data     map[string]string
			Spec     struct {
				Template struct {
					Spec struct {
						InitContainers []container `yaml:"initContainers"`
						Containers     []container
					}
				}
			}
		}
		err := d.Decode(&object)
		if errors.Is(err, io.EOF) {
			return sidecar, app, configs
		}
		testclient.Must(t, err)
		switch object.Kind {
		case "ConfigMap":
			configs[object.Metadata.Name] = object.Data
		case "Deployment":
			pod := object.Spec.Template.Spec
			if len(pod.InitContainers) != 1 || len(pod.Containers) != 1 {
				t.Fatalf("the containers are %+v", pod)
			}
			sidecar, app = pod.InitContainers[0], pod.Containers[0]
		}
	}
}

// TestManifestOfTheSidecarRuns runs the sidecar of the manifest for Kubernetes as it is, but for the number of its
// port. That the manifest itself is right is tested by make test-kubernetes.
func TestManifestOfTheSidecarRuns(t *testing.T) {
	sidecar, app, configs := manifest(t)
	environ, _ := connected(t)
	args := slices.Clone(sidecar.Args)
	for _, e := range sidecar.Env {
		switch key := e.ValueFrom.ConfigMapKeyRef; e.Name {
		case "POD_NAME":
			if e.ValueFrom.FieldRef.FieldPath != "metadata.name" {
				t.Errorf("POD_NAME is %+v", e)
			}
			for i, arg := range args {
				args[i] = strings.ReplaceAll(arg, "$(POD_NAME)", "app-7d9f-x2x4z")
			}
		case "CURATOR_CONNECT":
			if configs[key.Name][key.Key] == "" {
				t.Errorf("CURATOR_CONNECT is %+v, which no ConfigMap has", key)
			}
		default:
			t.Errorf("the sidecar does not know %s", e.Name)
		}
	}
	at := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--http=") })
	if at < 0 || len(sidecar.Ports) != 1 {
		t.Fatalf("the arguments are %q, the ports %+v", args, sidecar.Ports)
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(args[at], "--http="))
	testclient.Must(t, err)
	named := sidecar.Ports[0]
	if host != "" || port != named.ContainerPort {
		t.Errorf("%s: the probes ask the port %s of the pod", args[at], named.ContainerPort)
	}
	if question := "http://127.0.0.1:" + port + "/leader"; !strings.Contains(strings.Join(app.Args, "\n"), question) {
		t.Errorf("the app does not ask %s", question)
	}
	args[at] = "--http=127.0.0.1:0"

	p := launch(t, environ, "", args...)
	address := p.await("listening").Address
	p.await("leading")
	for path, probe := range map[string]probe{"/ready": sidecar.ReadinessProbe, "/live": sidecar.LivenessProbe} {
		if probe.HTTPGet.Path != path || probe.HTTPGet.Port != named.Name {
			t.Errorf("a probe of the sidecar is %+v, want %s at %s", probe, path, named.Name)
		}
		testenv.Eventually(t, func() bool {
			code, _ := ask(t, address, probe.HTTPGet.Path)
			return code == http.StatusOK
		}, path)
	}
	testenv.Eventually(t, func() bool {
		code, a := ask(t, address, "/leader")
		return code == http.StatusOK && a.ID == "app-7d9f-x2x4z" && a.Valid > 0 && a.Valid <= 1000
	}, "it leads")
}
