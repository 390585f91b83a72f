// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title RiddleBoard
/// @notice An editor, who knows the answers and does not take part, posts riddles with a reward. A riddle is
///         identified by the hash of its 32-byte answer.
contract RiddleBoard {
    struct Riddle {
        uint256 reward;
        uint256 expiresAt;
        bytes32 answerHash;
        address solver;
    }

    uint256 public constant MIN_DURATION = 3 days;
    uint256 public constant MIN_COMMIT_BLOCKS = 20;

    address public immutable editor;
    Riddle[] private riddles;
    mapping(address => uint256) public solvedCount;
    mapping(address => mapping(bytes32 => uint256)) public committedAt;

    event RiddlePosted(uint256 indexed id, uint256 reward, string question);
    event RiddleSolved(uint256 indexed id, address indexed solver);
    event RewardReclaimed(uint256 indexed id);
    event AnswerCommitted(address indexed solver, bytes32 commitment);

    modifier onlyEditor() {
        require(msg.sender == editor, "not editor");
        _;
    }

    constructor() {
        editor = msg.sender;
    }

    /// @notice Posts a riddle; the ether sent is the reward.
    function post(string calldata question, bytes32 answerHash, uint256 duration)
        external
        payable
        onlyEditor
        returns (uint256 id)
    {
        require(msg.value > 0, "no reward");
        require(duration >= MIN_DURATION, "too short");
        id = riddles.length;
        riddles.push(Riddle(msg.value, block.timestamp + duration, answerHash, address(0)));
        emit RiddlePosted(id, msg.value, question);
    }

    /// @notice Stores the caller's commitment, made by `commitmentFor`.
    function commit(bytes32 commitment) external {
        require(committedAt[msg.sender][commitment] == 0, "already committed");
        committedAt[msg.sender][commitment] = block.number;
        emit AnswerCommitted(msg.sender, commitment);
    }

    /// @notice Claims the reward of a riddle to which the caller has committed the answer.
    /// @param answer Preimage of the riddle's answer hash.
    /// @param salt Salt of the caller's commitment.
    function solve(uint256 id, bytes32 answer, bytes32 salt) external {
        uint256 since = committedAt[msg.sender][commitmentFor(id, msg.sender, answer, salt)];
        require(since != 0 && block.number >= since + MIN_COMMIT_BLOCKS, "no settled commitment");
        Riddle storage riddle = riddles[id];
        require(riddle.solver == address(0), "already solved");
        require(block.timestamp < riddle.expiresAt, "expired");
        require(keccak256(abi.encode(answer)) == riddle.answerHash, "wrong answer");
        riddle.solver = msg.sender;
        solvedCount[msg.sender] += 1;
        emit RiddleSolved(id, msg.sender);
        _pay(msg.sender, riddle.reward);
    }

    /// @notice Commitment of one solver to one answer.
    function commitmentFor(uint256 id, address solver, bytes32 answer, bytes32 salt) public pure returns (bytes32) {
        return keccak256(abi.encode(id, solver, answer, salt));
    }

    /// @notice Returns the reward of an expired riddle to the editor.
    function reclaim(uint256 id) external onlyEditor {
        Riddle storage riddle = riddles[id];
        require(riddle.solver == address(0), "already solved");
        require(block.timestamp >= riddle.expiresAt, "still open");
        uint256 reward = riddle.reward;
        require(reward > 0, "already reclaimed");
        riddle.reward = 0;
        emit RewardReclaimed(id);
        _pay(msg.sender, reward);
    }

    function riddleAt(uint256 id) external view returns (Riddle memory) {
        return riddles[id];
    }

    function _pay(address to, uint256 amount) private {
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
