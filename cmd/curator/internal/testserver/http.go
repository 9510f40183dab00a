package testserver

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Handler returns the commands as requests: POST /expire?session=0x1. "state" and "hits" may be a GET. The answers are
// those of Do. It refuses the pages of a browser, which reach the loopback interface too.
func (e *Ensemble) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := Command{Do: strings.Trim(r.URL.Path, "/"), Args: map[string]string{}}
		isRead := c.Do == "state" || c.Do == "hits"
		switch {
		case r.Header.Get("Origin") != "":
			reply(w, http.StatusForbidden, Answer{Error: "not for pages of a browser"})
			return
		case r.Method != http.MethodPost && !(isRead && r.Method == http.MethodGet):
			w.Header().Set("Allow", http.MethodPost)
			reply(w, http.StatusMethodNotAllowed, Answer{Error: "a command is a POST"})
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
		if err := r.ParseForm(); err != nil {
			reply(w, http.StatusBadRequest, Answer{Error: err.Error()})
			return
		}
		for name := range r.Form {
			c.Args[name] = r.Form.Get(name)
		}
		if _, ok := verbs[c.Do]; !ok {
			reply(w, http.StatusNotFound, e.Do(c))
			return
		}
		answer := e.Do(c)
		status := http.StatusOK
		if !answer.OK {
			status = http.StatusBadRequest
		}
		reply(w, status, answer)
	})
}

func reply(w http.ResponseWriter, status int, answer Answer) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the client has gone
}
