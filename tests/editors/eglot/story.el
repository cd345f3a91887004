;;; story.el --- Standfast through eglot, with no code of ours  -*- lexical-binding: t -*-

;; Emacs opens twice.py, asks for a session and a run by plain commands, answers a question, sees the diagnostic of a conflict,
;; settles it by a code action. Prints what it saw as one line of JSON that begins with "STORY ".

(require 'cl-lib)
(require 'json)
(require 'eglot)

(setq eglot-autoshutdown t eglot-confirm-server-initiated-edits nil eglot-events-buffer-size 0
      make-backup-files nil create-lockfiles nil flymake-no-changes-timeout 0.1)

(defvar story '() "What was seen, as an alist.")
(defvar story-questions '() "Prompts that a person would have answered.")

(defun story-note (key value) (push (cons key value) story))

(defun story-read-on ()
  "Let jsonrpc.el read what it has left: a request's answer throws out of its loop, past the messages that came with it."
  (let ((process (jsonrpc--process (eglot-current-server))))
    (funcall (process-filter process) process "")))

(defun story-wait (what found)
  "Wait until FOUND returns non-nil and return that; die loudly over WHAT after 20 s."
  (let ((end (+ (float-time) 20)) value)
    (while (not (setq value (funcall found)))
      (when (> (float-time) end) (error "waited in vain for %s; asked: %S" what story-questions))
      (accept-process-output nil 0.02)
      (story-read-on))
    value))

(defun story-command (name argument)
  "Run the documented command NAME with ARGUMENT and return the result."
  (jsonrpc-request (eglot-current-server) :workspace/executeCommand
                   (list :command name :arguments (vector argument)) :timeout 20))

(defun story-begin (text)
  "A new session and a message in it."
  (let ((made (story-command "standfast.session.create" (list :workspaceUri (getenv "STORY_URI")))))
    (story-command "standfast.run.start"
                   (list :sessionId (plist-get (plist-get made :session) :sessionId) :text text))))

(defun story-diagnostics () (flymake-diagnostics))

(defun story-text (file) (with-temp-buffer (insert-file-contents file) (buffer-string)))

(find-file "twice.py")
(python-mode)
(let ((eglot-sync-connect 30))
  (eglot '(python-mode) (project-current) 'eglot-lsp-server (split-string (getenv "STORY_SERVER") " ") "python"))
(story-wait "the server" (lambda () (eglot-managed-p)))

(cl-letf (((symbol-function 'completing-read)
           (lambda (prompt &rest _) (push (substring-no-properties prompt) story-questions) "Allow")))
  (story-begin "write")
  (story-wait "new.txt" (lambda () (file-exists-p "new.txt"))))
(story-note 'question (car story-questions))
(story-note 'written (story-text "new.txt"))

(story-begin "patch")
(story-wait "a diagnostic" #'story-diagnostics)
(let ((diagnostic (car (story-diagnostics))))
  (story-note 'diagnostic (flymake-diagnostic-text diagnostic))
  (story-note 'line (line-number-at-pos (flymake-diagnostic-beg diagnostic))))

(goto-char (point-min))
(let* ((actions (eglot-code-actions (point) (point)))
       (chosen (cl-find "Apply here: line 2" actions :key (lambda (each) (plist-get each :title)) :test #'equal))
       (command (plist-get chosen :command)))
  (story-note 'actions (vconcat (mapcar (lambda (each) (plist-get each :title)) actions)))
  (eglot-execute-command (eglot-current-server) (intern (plist-get command :command)) (plist-get command :arguments)))
(story-wait "the change" (lambda () (equal (story-text "twice.py") "x = 0\nx = 1\n")))
(revert-buffer t t t)
(story-note 'left (vconcat (eglot-code-actions (point-min) (point-max))))
(story-wait "the diagnostic to go" (lambda () (null (story-diagnostics))))
(story-note 'settled t)

(eglot-shutdown (eglot-current-server) nil 10)
(princ (concat "STORY " (json-encode story) "\n"))
