// Package kubernetes checks the manifests here as the API server of Kubernetes does. It is a module of its own, outside
// of the workspace, because Kubernetes takes minutes to compile: make test-kubernetes runs it.
package kubernetes

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// check returns the kinds in a manifest, and why the API server would refuse it: unknown fields and wrong types, as
// kubectl --validate=strict does, then the meaning of the fields, and then the pod security standard "restricted".
func check(manifest []byte) (kinds []string, err error) {
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, legacyscheme.Scheme, legacyscheme.Scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	for documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return kinds, nil
		}
		if err != nil {
			return nil, err
		}
		object, kind, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, kind.Kind)
		if err := checkObject(object); err != nil {
			return nil, fmt.Errorf("%s: %w", kind.Kind, err)
		}
	}
}

func checkObject(object runtime.Object) error {
	legacyscheme.Scheme.Default(object)
	switch o := object.(type) {
	case *corev1.ConfigMap:
		o.Namespace = corev1.NamespaceDefault
		var internal core.ConfigMap
		if err := legacyscheme.Scheme.Convert(o, &internal, nil); err != nil {
			return err
		}
		return corevalidation.ValidateConfigMap(&internal).ToAggregate()
	case *appsv1.Deployment:
		o.Namespace = corev1.NamespaceDefault
		var internal apps.Deployment
		if err := legacyscheme.Scheme.Convert(o, &internal, nil); err != nil {
			return err
		}
		options := pod.GetValidationOptionsFromPodTemplate(&internal.Spec.Template, nil)
		if all := appsvalidation.ValidateDeployment(&internal, options); len(all) > 0 {
			return all.ToAggregate()
		}
		return checkSecurity(&o.Spec.Template)
	}
	return fmt.Errorf("%T is not checked", object)
}

func checkSecurity(template *corev1.PodTemplateSpec) error {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return err
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	results := evaluator.EvaluatePod(restricted, &template.ObjectMeta, &template.Spec)
	if all := policy.AggregateCheckResults(results); !all.Allowed {
		return errors.New(all.ForbiddenDetail())
	}
	return nil
}

func TestManifestsAreAccepted(t *testing.T) {
	names, err := filepath.Glob("*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("manifests %q: %v", names, err)
	}
	for _, name := range names {
		manifest, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		kinds, err := check(manifest)
		if err != nil || strings.Join(kinds, " ") != "ConfigMap Deployment" {
			t.Errorf("%s has %q: %v", name, kinds, err)
		}
	}
}

func TestBrokenManifestsAreRefused(t *testing.T) {
	whole, err := os.ReadFile("elect.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, old, broken, want string }{
		{
			"field that does not exist", "livenessProbe:", "liveProbe:",
			`unknown field "spec.template.spec.initContainers[0].liveProbe"`,
		},
		{"field twice", "  replicas: 2\n", "  replicas: 2\n  replicas: 3\n", `key "replicas" already set`},
		{"text for a number", "replicas: 2", "replicas: two", "cannot unmarshal string"},
		{"number for a text", "name: elect\n          # The", "name: 7\n          # The", "cannot unmarshal number"},
		{"quantity", "memory: 64Mi", "memory: 64 MB", "quantities must match"},
		{"kind", "kind: Deployment", "kind: Deploymint", `no kind "Deploymint"`},
		{
			"selector of other labels", "matchLabels:\n      app.kubernetes.io/name: app",
			"matchLabels:\n      app.kubernetes.io/name: other", "`selector` does not match template `labels`",
		},
		{
			"no image", "          image: registry.example.com/curator:v1\n", "",
			"initContainers[0].image: Required value",
		},
		{
			"restart policy", "restartPolicy: Always", "restartPolicy: Ever",
			"initContainers[0].restartPolicy: Unsupported value",
		},
		{
			"probe of a container that is no sidecar", "          restartPolicy: Always\n", "",
			"readinessProbe: Forbidden",
		},
		{
			"name of a port", "port: elect\n            periodSeconds: 5", "port: elect_\n            periodSeconds: 5",
			"readinessProbe.httpGet.port: Invalid value",
		},
		{"root", "runAsNonRoot: true", "runAsNonRoot: false", "runAsNonRoot"},
		{"capabilities", "drop: [ALL]", "drop: [KILL]", "unrestricted capabilities"},
	} {
		broken := bytes.Replace(whole, []byte(c.old), []byte(c.broken), 1)
		if bytes.Equal(broken, whole) {
			t.Errorf("%s: the manifest has no %q", c.name, c.old)
		}
		if _, err := check(broken); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want %q", c.name, err, c.want)
		}
	}
}
